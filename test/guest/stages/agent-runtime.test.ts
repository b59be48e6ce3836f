import { describe, expect, it } from 'vitest';
import type { AgentPackage } from '../../../guest/agent/types.ts';
import type { Engine, ImageInfo } from '../../../guest/engine/port.ts';
import { resolveRuntime, verifyRuntimePlanned } from '../../../guest/stages/agent-runtime.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

const ID = `sha256:${'a'.repeat(64)}`;
const REF = `registry.example/agent-runtime@sha256:${'b'.repeat(64)}`;
const IMAGE: ImageInfo = {
  id: ID,
  architecture: 'amd64',
  os: 'linux',
  sizeBytes: 1,
  workingDir: '',
  env: ['PATH=/bin'],
  volumes: [],
  labels: {},
};

const agent = (kind: 'container' | 'brokered') => ({ manifest: { kind } }) as AgentPackage;
const plan = (ref: string | null, network = 'none') =>
  ({ agent_runtime_image: ref, tasks: [{ network: 'none' }, { network }] }) as unknown as EvalPlan;

/** An engine that has `present`, and gets `pulled` when it is asked to. */
function contextOf(present: ImageInfo | null, pulled: ImageInfo | null = null) {
  let here = present;
  const engine = {
    image: async () => here,
    pull: async () => {
      here = pulled;
    },
  } as Partial<Engine> as Engine;
  return { engine, signal: new AbortController().signal, counters: { faults: 0 }, maxStartRetries: 0 };
}

describe('a plan and its agent', () => {
  it('agree on whether there is a runtime image', () => {
    verifyRuntimePlanned(agent('brokered'), plan(ID));
    verifyRuntimePlanned(agent('container'), plan(null));
    // A model's proxy is made from it too.
    verifyRuntimePlanned(agent('container'), plan(ID, 'inference'));
    expect(codeOf(() => verifyRuntimePlanned(agent('brokered'), plan(null)))).toBe('plan_inconsistent');
    expect(codeOf(() => verifyRuntimePlanned(agent('container'), plan(ID)))).toBe('plan_inconsistent');
  });
});

describe('the runtime image', () => {
  it('is what the plan pins, by id or by a digest that is pulled', async () => {
    const runtime = { imageId: ID, env: ['PATH=/bin'] };
    expect(await resolveRuntime(contextOf(IMAGE), agent('brokered'), plan(ID))).toEqual(runtime);
    expect(await resolveRuntime(contextOf(null, IMAGE), agent('brokered'), plan(REF))).toEqual(runtime);
    expect(await resolveRuntime(contextOf(null), agent('container'), plan(null))).toBeNull();
  });

  it.each([
    ['is not there', contextOf(null), ID, 'image_missing'],
    ['is absent after its pull', contextOf(null), REF, 'image_missing'],
    ['is another one', contextOf({ ...IMAGE, id: `sha256:${'c'.repeat(64)}` }), ID, 'image_changed'],
    ['declares a VOLUME', contextOf({ ...IMAGE, volumes: ['/data'] }), ID, 'image_declares_volume'],
    [
      'has a label of ours',
      contextOf({ ...IMAGE, labels: { 'io.cvm-evaluator.session': 'x' } }),
      ID,
      'image_label_reserved',
    ],
    ['is for another machine', contextOf({ ...IMAGE, architecture: 'arm64' }), ID, 'image_architecture'],
  ])('is refused when it %s', async (_, context, ref, code) => {
    expect(await rejectionCode(resolveRuntime(context, agent('brokered'), plan(ref)))).toBe(code);
  });
});
