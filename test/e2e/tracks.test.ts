import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseResult } from '../../guest/wire/result.ts';
import { type Ended, evaluator } from '../support/evaluator.ts';
import { scratchFolder } from '../support/scratch.ts';
import { removeTaskImages } from '../support/task-images.ts';

const TASKS = join(import.meta.dirname, '../../task-cache');
const folder = scratchFolder();
const out = (name: string) => join(folder, name);

const key = join(folder, 'golden.key');
const cache = join(folder, 'cache');
const SOURCE = ['--cache', cache, '--golden-key', key, '--solutions', TASKS];

const run = (name: string, track: string, agent: string): Promise<Ended> =>
  evaluator(['run', ...SOURCE, '--track', track, '--agent', agent, '--out', out(name), '--json']);

function verify(name: string): Promise<Ended> {
  const file = (option: string, extension = 'json') => [
    `--${option}`,
    join(out(name), `${option}.${extension}`),
  ];
  return evaluator([
    'verify',
    join(out(name), 'result.json'),
    ...['plan', 'plan-root', 'allowlist', 'collateral'].flatMap((option) => file(option)),
    ...file('mechanism', 'yaml'),
    ...file('root', 'pem'),
  ]);
}

/** Of four tracks, in one sealed cache. */
const BAKED = [
  'package-slug',
  'package-palette',
  'skill-minutes',
  'mcp-clock',
  'mcp-notes',
  'repo-guestbook',
  'repo-reports',
];
removeTaskImages([...BAKED, 'honest', 'flipped']);
let ended: Record<'auditor' | 'nop' | 'oracle' | 'repositories', Ended>;
beforeAll(async () => {
  expect((await evaluator(['keygen', '--out', key])).code).toBe(0);
  const baked = await evaluator([
    'bake',
    '--from',
    TASKS,
    '--only',
    BAKED.join(','),
    '--seal',
    key,
    '--out',
    cache,
  ]);
  expect(baked.code, baked.stderr).toBe(0);
  // Two at a time: on a machine that is too busy a run aborts, as it should.
  const limit = pLimit(2);
  const [auditor, nop, oracle, repositories] = await Promise.all([
    limit(() => run('auditor', 'packages', 'auditor')),
    limit(() => run('nop', 'skills', 'nop')),
    limit(() => run('oracle', 'mcp_servers', 'oracle')),
    limit(() => run('repositories', 'repositories', 'auditor')),
  ]);
  ended = { auditor, nop, oracle, repositories };
}, 400_000);

const summaryOf = (name: keyof typeof ended) => {
  expect(ended[name].code, ended[name].stderr).toBe(0);
  return JSON.parse(ended[name].stdout);
};
const recordOf = (name: string) => parseResult(readFileSync(join(out(name), 'result.json'))).score_record;

describe('a behavioural run', () => {
  it('is accepted with a figure that only the challenge has', () => {
    const summary = summaryOf('auditor');
    expect([summary.accepted, summary.score]).toEqual([true, 1]);
    expect(summary).toMatchObject({ eligible: false, ineligible_because: 'calibration', cut: 0.2 });
    const decisions = summary.tasks.map((task: { verdict: string; reps: { decision: string }[] }) => [
      task.verdict,
      ...task.reps.map(({ decision }) => decision),
    ]);
    expect(decisions).toEqual([
      ['BLOCK', 'BLOCK', 'BLOCK', 'BLOCK'],
      ['ALLOW', 'ALLOW', 'ALLOW', 'ALLOW'],
    ]);
    const record = recordOf('auditor');
    expect(record.final).toEqual({ score_f64be: null, passed_tasks: null, total_tasks: 2 });
    expect([record.r, record.tasks[0]?.limits]).toEqual([
      3,
      {
        nano_cpus: 1e9,
        memory_bytes: 2 * 1024 ** 3,
        storage_bytes: 256 * 1024 ** 2,
        cpu_budget_ms: 30_000,
        wall_budget_ms: 90_000,
      },
    ]);
  });

  it('is verified but for that figure, and carries no label', async () => {
    const { code, stdout } = await verify('auditor');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/NOT CHECKED\s+behavioural_score/)]);
    for (const file of ['plan.json', 'result.json', 'journal.jsonl'])
      expect(readFileSync(join(out('auditor'), file), 'utf8')).not.toMatch(/malicious|"safe"/);
  });

  it('of an agent that does nothing has no verdict, and scores 0', () => {
    const summary = summaryOf('nop');
    expect([summary.accepted, summary.score, summary.tasks[0].verdict]).toEqual([true, 0, null]);
    expect(summary.tasks[0].reps.map((rep: { failure: string }) => rep.failure)).toEqual(
      Array(3).fill('liveness'),
    );
  });

  it('of the oracle scores 1', () => {
    expect(summaryOf('oracle').score).toBe(1);
  });
});

describe('a repositories run', () => {
  it('scores each rep alone, and the task by their mean', () => {
    const { tasks, score } = summaryOf('repositories');
    const [guestbook, reports] = tasks;
    // One of two vulnerabilities: F2 = 5/9, weighted 0.5; dependency and secret are found.
    expect(guestbook.reps.map((rep: { f2: number }) => rep.f2)).toEqual(
      Array(2).fill(expect.closeTo(7 / 9, 12)),
    );
    expect(reports.score).toBe(1);
    expect(score).toBeCloseTo((7 / 9 + 1) / 2, 12);
    expect(recordOf('repositories').final.passed_tasks).toBeNull();
  });

  it('leaves what each agent answered, for whoever wants to know why', () => {
    const answer = readFileSync(join(out('repositories'), 'reps/repo-reports/1/result.json'), 'utf8');
    expect(JSON.parse(answer).evidence).toEqual({ audit: { files_analysed: 4 } });
  });

  it('is verified', async () => {
    expect((await verify('repositories')).code).toBe(0);
  });
});

describe('what is refused before anything starts', () => {
  it.each<[string, string[], string]>([
    ['an unknown track', ['--track', 'chess'], 'track_unknown'],
    ['a policy where there is none', ['--track', 'skills', '--policy', 'mean'], 'usage'],
    ['a task of another track', ['--track', 'skills', '--tasks', 'mcp-clock'], 'task_unknown'],
    [
      'another number of reps than the track has',
      ['--track', 'skills', '--reps', '2'],
      'plan_contradicts_mechanism',
    ],
  ])('%s', async (_, options, code) => {
    const args = ['run', ...SOURCE, '--agent', 'auditor', '--out', out(`refused-${code}`), ...options];
    const { code: exit, stderr } = await evaluator(args);
    expect([exit, stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
  });
});

it('a bake that checks its tasks refuses the one whose label its solution denies, and no other', async () => {
  const tasks = join(folder, 'labelled');
  for (const name of ['honest', 'flipped'])
    cpSync(join(TASKS, 'skill-minutes'), join(tasks, name), { recursive: true });
  const label = '{"schema_version":1,"class":"malicious"}';
  writeFileSync(join(tasks, 'flipped/tests/ground_truth.json'), label);
  const { code, stderr } = await evaluator([
    'bake',
    '--from',
    tasks,
    '--out',
    join(folder, 'refused'),
    '--check',
  ]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('bake_check_failed')]);
  expect(stderr).toContain('1 of 2 tasks');
  expect(stderr).toContain('task flipped: flaky: oracle, restart: reward 0');
});
