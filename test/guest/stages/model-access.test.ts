import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { INFERENCE_KEY, readInferenceOffer } from '../../../guest/stages/model-access.ts';
import { type Mechanism, parseMechanism } from '../../../guest/wire/mechanism.ts';
import { planTask } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

const shipped = parseMechanism(
  readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url)),
).mechanism;
const rules: NonNullable<Mechanism['inference']> = {
  upstream: 'https://models.invalid/v1/chat/completions',
  ca_pem: null,
  models: ['vendor/model-1'],
  caps: { requests: 1, sent_bytes: 1, received_bytes: 1, tokens: 1, reply_tokens: 1 },
};
const offering = { ...shipped, inference: rules };
const plan = (network: 'none' | 'inference') => ({ tasks: [planTask('a'), { ...planTask('b'), network }] });
const vm = (key?: string) => ({ agentEnv: key === undefined ? {} : { [INFERENCE_KEY]: key } });

describe('readInferenceOffer', () => {
  it('is nothing where no task wants a model', () => {
    expect(readInferenceOffer(plan('none'), shipped, vm())).toBeNull();
    expect(readInferenceOffer(plan('none'), offering, vm('sk-1'))).toBeNull();
  });

  it("is the mechanism's, with the VM's key", () => {
    expect(readInferenceOffer(plan('inference'), offering, vm('sk-1'))).toEqual({ rules, apiKey: 'sk-1' });
  });

  it('refuses a plan whose mechanism offers no model', () => {
    expect(codeOf(() => readInferenceOffer(plan('inference'), shipped, vm('sk-1')))).toBe(
      'network_unsupported',
    );
  });

  it.each([undefined, '', 'sk 1', 'sk\r\nX-Evil: 1', 'sk-é'])('refuses a VM with %j for a key', (key) => {
    expect(codeOf(() => readInferenceOffer(plan('inference'), offering, vm(key)))).toBe(
      'inference_key_missing',
    );
  });
});
