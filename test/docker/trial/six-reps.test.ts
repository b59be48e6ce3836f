import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyRecord } from '../../../guest/consensus/record.ts';
import type { ContainerSpec, Engine } from '../../../guest/engine/port.ts';
import type { Host } from '../../../guest/stages/config.ts';
import { createJournal } from '../../../guest/stages/journal.ts';
import type { UnlockedOrder } from '../../../guest/stages/order.ts';
import { reduce } from '../../../guest/stages/reduce.ts';
import { run } from '../../../guest/stages/run.ts';
import { Capacity } from '../../../guest/trial/capacity.ts';
import { LABEL } from '../../../guest/trial/labels.ts';
import { encodeF64be } from '../../../guest/wire/f64.ts';
import { type PinnedMechanism, parseMechanism, trackRules } from '../../../guest/wire/mechanism.ts';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { containersOf, judged } from '../../support/judged.ts';
import { planKeys, planTask, signedPlan } from '../../support/plan.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { agentRuntime, RELAY, startTrial, type TrialHarness } from '../../support/trial.ts';

const MIB = 1024 * 1024;
const shipped = parseMechanism(readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url)));
/** A wall that one second of CPU ends before, on a machine that has other things to do. */
const limits = { cpu_budget_ms: 1000, wall_budget_ms: 30_000, memory_bytes: 64 * MIB };
const folder = scratchFolder();
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** The shipped rules of a track, but for what is 2 or 3 reps and larger budgets there. */
function sixOf(track: string): PinnedMechanism {
  const rules = trackRules(shipped.mechanism, track);
  const free = { r: 'plan', cpu_budget_ms: 'task', wall_budget_ms: 'task', memory_mb: 'task' } as const;
  const tracks = { ...shipped.mechanism.tracks, [track]: { ...rules, ...free } };
  return { ...shipped, mechanism: { ...shipped.mechanism, tracks } };
}

/**
 * An agent is not told which rep it is, and these six must differ: every exec of a rep's containers has its
 * number as TURN, from the label that the container was created with.
 */
function tellingTurns(real: Engine): Engine {
  const turns = new Map<string, string>();
  return {
    ...real,
    create: async (spec: ContainerSpec) => {
      const id = await real.create(spec);
      turns.set(id, spec.labels[LABEL.rep]?.split('#')[1] ?? '');
      return id;
    },
    createExec: (id, spec) => real.createExec(id, { ...spec, env: [...spec.env, `TURN=${turns.get(id)}`] }),
  };
}

const LIE = 'docker: Error response from daemon: image pull failed';
/** Fails in five ways, and is good in the sixth. */
const agent = (garbage: string, good: string) => `set -e
field() { python3 -c "import json; c = json.load(open('/task/context.json')); print(c['probe']['$1'], end='')"; }
alive() { field content > "$(field path)"; }
case $TURN in
0) exec python3 -c "import time
while time.process_time() < ${limits.cpu_budget_ms / 1000 + 1}: pass" ;;
1) exec python3 -c "x = bytearray(400 * 1024 * 1024)" ;;
2) sleep 600 ;;
3) ${garbage} ;;
4) echo "${LIE}" | tee /dev/stderr; printf 'RESULT={}\\n\\033]0;owned\\007{"event":"rep"}\\n'; exit 125 ;;
5) ${good} ;;
esac`;

interface Case {
  track: string;
  kind: 'container' | 'brokered';
  garbage: string;
  good: string;
}

async function orderOf({ track, kind, garbage, good }: Case): Promise<UnlockedOrder> {
  const { context } = trial;
  const runtime = kind === 'brokered' ? await agentRuntime(context.engine) : null;
  const taskId = `six-${track}-${kind}`;
  const audited = [{ path: 'environment/artifact/README.md', bytes: Buffer.from('#\n'), executable: false }];
  const truth = Buffer.from('{"schema_version":1,"secrets":[{"file":"a.py","line":7}]}');
  const tests = [{ path: 'tests/ground_truth.json', bytes: truth, executable: false }];
  const task = trial.taskOf({ script: '', taskId, limits, audited, tests });
  const plan = signedPlan(planKeys(), {
    mechanism_digest: shipped.digest,
    track,
    policy: track === 'terminal-bench' ? 'vote' : null,
    r: 6,
    tasks: [planTask(taskId, { image: task.trial.image.id })],
    agent_runtime_image: runtime?.imageId ?? null,
  });
  const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text), executable: true });
  const script = file('agent/agent.sh', agent(garbage, good));
  const ordered = runtime
    ? {
        kind: 'brokered' as const,
        command: ['python3', '-m', 'evaluator_harbor', '/agent/agent.py'],
        env: [],
        files: [script, file('agent/agent.py', RELAY)],
        runtime,
      }
    : { kind: 'container' as const, command: ['bash', '/agent/agent.sh'], env: [], files: [script] };
  return {
    plan,
    pinned: sixOf(track),
    cache: { cacheDigest: plan.cache_digest, toolchainDigest: plan.toolchain_digest },
    dependencies: [],
    tasks: [{ ...task, agent: ordered }],
    context: { ...context, engine: tellingTurns(context.engine), counters: { faults: 0 } },
    capacity: new Capacity({ cpus: 64, memoryBytes: 1e12, diskBytes: 1e15, slots: 6 }),
    grantId: null,
  } as unknown as UnlockedOrder;
}

/** One task of six reps through the stages run and reduce; the record must hold against its plan. */
async function evaluated(one: Case) {
  const order = await orderOf(one);
  const file = join(folder, `${one.track}-${one.kind}.jsonl`);
  const fd = openSync(file, 'w');
  const { context, session } = trial;
  const host = {
    engine: context.engine,
    session,
    journal: createJournal(fd),
    config: { logsDirectory: null },
    signal: context.signal,
  } as unknown as Host;
  const record = reduce(order, await run(order, host));
  closeSync(fd);
  verifyRecord(record, order.plan, order.pinned);
  const journal = readFileSync(file, 'utf8').trimEnd().split('\n');
  return { task: record.tasks[0], final: record.final, infra: record.infra, journal };
}

/** A rep's verdict, F2, reward or failure, in a word. */
function wordOf(rep: RepRecord): string {
  if (rep.value && 'verdict' in rep.value) return rep.value.verdict;
  if (rep.value && 'score_f64be' in rep.value) return `F2 ${rep.value.score_f64be}`;
  return judged(rep);
}

const answer = (text: string) => `alive; printf '%s' '${text}' > /task/result.json`;
const AUDIT = {
  garbage: answer('garbage'),
  good: answer(
    '{"verdict":{"decision":"block"},"evidence":{"audit":{"files_analysed":1}},"findings":[{"kind":"secret","file":"a.py","line":7}]}',
  ),
};
const TASK = { garbage: 'echo garbage > /app/answer', good: 'echo right > /app/answer' };
const CODES = ['cpu_budget', 'memory_limit', 'wall_backstop', 'malformed_output', 'liveness'];
const FAILED = CODES.slice(0, 3);
const ONE = encodeF64be(1);
const ZERO = encodeF64be(0);

describe.concurrent('one task, six reps: five that fail in five ways, and a good one', () => {
  it.each<[string, Case, words: string[], reduced: object, score: string | null]>([
    [
      'behavioural, excluded, a container agent: the verdict of the good one',
      { track: 'skills', kind: 'container', ...AUDIT },
      [...CODES, 'BLOCK'],
      { verdict: 'BLOCK', score_f64be: null, completed: 1 },
      null,
    ],
    [
      'behavioural, excluded, a brokered agent: the verdict of the good one',
      { track: 'skills', kind: 'brokered', ...AUDIT },
      [...CODES, 'BLOCK'],
      { verdict: 'BLOCK', score_f64be: null, completed: 1 },
      null,
    ],
    [
      'repositories, excluded, a brokered agent: the score of the good one',
      { track: 'repositories', kind: 'brokered', ...AUDIT },
      [...CODES, `F2 ${ONE}`],
      { verdict: null, score_f64be: ONE, completed: 1 },
      ONE,
    ],
    [
      'terminal-bench, counted, a container agent: garbage and lies are completed and worth 0, FAIL',
      { track: 'terminal-bench', kind: 'container', ...TASK },
      [...FAILED, 'reward 0', 'reward 0', 'reward 1'],
      { verdict: 'FAIL', score_f64be: ZERO, completed: 3 },
      ZERO,
    ],
  ])('%s', async (_, one, words, reduced, score) => {
    const { task, final, infra, journal } = await evaluated(one);
    expect(task?.reps.map(wordOf)).toEqual(words);
    expect(task).toMatchObject(reduced);
    expect(final.score_f64be).toBe(score);
    expect(infra).toEqual({ faults: 0, retried: 0 });
    // One line of JSON of each rep, and no word that an agent has printed.
    expect(journal.map((line) => JSON.parse(line).event)).toEqual(words.map(() => 'rep'));
    expect(journal.join('')).not.toMatch(/pull failed|RESULT|owned/);
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
