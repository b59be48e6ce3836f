import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../scripts/run/options.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf } from '../../support/throws.ts';

const folder = scratchFolder();
const [plain, baked] = [join(folder, 'plain'), join(folder, 'baked')];
for (const path of [plain, baked]) mkdirSync(path);
writeFileSync(join(baked, 'manifest.json'), '');
let runs = 0;

function image(cache: string, ...options: string[]) {
  const out = join(folder, `out-${runs++}`);
  return readOptions(['--cache', cache, ...options, '--agent', 'nop', '--out', out], 0)?.image;
}

describe('--agent-env', () => {
  const given = (agent: string, name: string) =>
    readOptions(['--cache', plain, '--agent', agent, '--agent-env', name, '--out', join(folder, 'env')], 0)
      ?.agentEnv;

  it.each(['nop', plain])('is refused where it names what no agent is given: %s', (agent) => {
    expect(given(agent, 'LLM_MODEL')).toEqual(['LLM_MODEL']);
    for (const name of ['INFERENCE_API_KEY', 'EVAL_RUN_TOKEN', 'https_proxy'])
      expect(codeOf(() => given(agent, name))).toBe('usage');
  });
});

describe('--image', () => {
  it('is a process without it', () => {
    expect(image(plain)).toBe(null);
  });

  it('alone, before another option or at the end, is an image to be built', () => {
    expect(image(plain, '--image')).toEqual({ kind: 'built' });
    expect(
      readOptions(['--cache', plain, '--agent', 'nop', '--out', join(folder, 'last'), '--image'], 0)?.image,
    ).toEqual({
      kind: 'built',
    });
  });

  it.each([['--image', 'repo:1'], ['--image=repo:1']])('with a name is that image: %s', (...words) => {
    expect(image(baked, ...words)).toEqual({ kind: 'named', ref: 'repo:1' });
  });

  it('with a name needs the cache that is in it', () => {
    expect(codeOf(() => image(plain, '--image', 'repo:1'))).toBe('usage');
  });
});
