import { describe, expect, it } from 'vitest';
import { finalScore } from '../../../guest/consensus/final.ts';
import { reduceTask } from '../../../guest/consensus/task.ts';
import { trackKind } from '../../../guest/consensus/track-kind.ts';
import { encodeF64be } from '../../../guest/wire/f64.ts';
import type { TrackRules } from '../../../guest/wire/mechanism.ts';
import type { RepRecord, RepValue } from '../../../guest/wire/score-record.ts';
import { rep } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

const TERMINAL: TrackRules = {
  tasks_per_round: 'plan',
  r: 'plan',
  policy: 'plan',
  failed_reps: 'counted',
  min_completed: 1,
  cpu_budget_ms: 'task',
  wall_budget_ms: 'task',
  cpus: 'task',
  memory_mb: 'task',
  pids: 512,
  networks: { ranked: ['none'], calibration: ['none', 'open'] },
  metric: 'pass_rate',
  cut: null,
};
const SKILLS: TrackRules = { ...TERMINAL, policy: null, failed_reps: 'excluded', metric: 'clamped_mcc' };
const REPOSITORIES: TrackRules = { ...SKILLS, metric: 'f2' };

const reps = (rewards: readonly (number | null)[]) => rewards.map((reward, i) => rep('task-a', i, reward));
const withValues = (values: readonly (RepValue | null)[]): RepRecord[] =>
  values.map((value, i) => ({ ...rep('task-a', i, value === null ? null : 1), value }));

describe('reduceTask', () => {
  it('votes on terminal-bench', () => {
    expect(reduceTask('terminal-bench', TERMINAL, 'vote', reps([1, null, 1]))).toEqual({
      verdict: 'PASS',
      score_f64be: encodeF64be(1),
      completed: 2,
    });
    expect(reduceTask('terminal-bench', TERMINAL, 'vote', reps([1, null, 0]))).toEqual({
      verdict: 'FAIL',
      score_f64be: encodeF64be(0),
      completed: 2,
    });
  });

  it('averages on terminal-bench, and passes only a full score', () => {
    const mean = (rewards: (number | null)[]) =>
      reduceTask('terminal-bench', TERMINAL, 'mean', reps(rewards));
    expect(mean([1, null, 0.5])).toEqual({ verdict: 'FAIL', score_f64be: encodeF64be(0.5), completed: 2 });
    expect(mean([1, 1, 1])).toEqual({ verdict: 'PASS', score_f64be: encodeF64be(1), completed: 3 });
  });

  it.each(['vote', 'mean'] as const)('scores 0 without a verdict when no rep completed (%s)', (policy) => {
    expect(reduceTask('terminal-bench', TERMINAL, policy, reps([null, null, null]))).toEqual({
      verdict: null,
      score_f64be: encodeF64be(0),
      completed: 0,
    });
  });

  it('gives a verdict and no score on behavioural tracks', () => {
    const values = [{ verdict: 'ALLOW' }, null, { verdict: 'BLOCK' }] as const;
    expect(reduceTask('skills', SKILLS, null, withValues(values))).toEqual({
      verdict: 'ALLOW',
      score_f64be: null,
      completed: 2,
    });
  });

  it('gives a score and no verdict on repositories', () => {
    const values = [{ score_f64be: encodeF64be(0.8) }, null];
    expect(reduceTask('repositories', REPOSITORIES, null, withValues(values))).toEqual({
      verdict: null,
      score_f64be: encodeF64be(0.8),
      completed: 1,
    });
  });

  it.each([
    ['skills', SKILLS, null, { reward_f64be: encodeF64be(1) }],
    ['repositories', REPOSITORIES, null, { verdict: 'ALLOW' }],
    ['terminal-bench', TERMINAL, 'vote', { score_f64be: encodeF64be(1) }],
  ] as const)('refuses a value of another track on %s', (track, rules, policy, value) => {
    expect(codeOf(() => reduceTask(track, rules, policy, withValues([value])))).toBe('record_value_mismatch');
  });

  it('refuses a rep whose outcome, value and failure disagree', () => {
    const [good] = reps([1]);
    if (!good) throw new Error('no rep');
    for (const bad of [{ value: null }, { failure: 'liveness' }, { outcome: 'failed' }] as const) {
      const run = () => reduceTask('terminal-bench', TERMINAL, 'vote', [{ ...good, ...bad }]);
      expect(codeOf(run)).toBe('record_outcome_inconsistent');
    }
  });

  it('refuses an unknown track and a missing policy', () => {
    expect(codeOf(() => reduceTask('chess', TERMINAL, 'vote', reps([1])))).toBe('track_unknown');
    expect(codeOf(() => reduceTask('terminal-bench', TERMINAL, null, reps([1])))).toBe(
      'plan_contradicts_mechanism',
    );
  });
});

describe('trackKind', () => {
  it('knows the five tracks and nothing inherited', () => {
    expect(['skills', 'mcp_servers', 'packages', 'repositories', 'terminal-bench'].map(trackKind)).toEqual([
      'behavioural',
      'behavioural',
      'behavioural',
      'repositories',
      'terminal-bench',
    ]);
    for (const name of ['constructor', '__proto__', 'Skills', '']) {
      expect(codeOf(() => trackKind(name))).toBe('track_unknown');
    }
  });
});

describe('finalScore', () => {
  const task = (score: number | null, verdict: 'PASS' | 'FAIL' | null) => ({
    task_id: 'task-a',
    verdict,
    score_f64be: score === null ? null : encodeF64be(score),
  });

  it('is the mean of every task, those without a completed rep included', () => {
    const tasks = [task(1, 'PASS'), task(0, null), task(0.5, 'FAIL')];
    expect(finalScore('terminal-bench', tasks)).toEqual({
      score_f64be: encodeF64be(0.5),
      passed_tasks: 1,
      total_tasks: 3,
    });
  });

  it('sums as the reference does', () => {
    const tasks = [0.1, 0.2, 0.3].map((score) => task(score, 'FAIL'));
    expect(finalScore('terminal-bench', tasks).score_f64be).toBe('3fc9999999999999');
  });

  it('leaves out what would publish a label, and passes where nothing passes or fails', () => {
    expect(finalScore('packages', [{ task_id: 'a', verdict: null, score_f64be: null }])).toEqual({
      score_f64be: null,
      passed_tasks: null,
      total_tasks: 1,
    });
    expect(finalScore('repositories', [task(0.5, null)])).toEqual({
      score_f64be: encodeF64be(0.5),
      passed_tasks: null,
      total_tasks: 1,
    });
  });

  it('refuses a task without a score where tasks have one', () => {
    expect(codeOf(() => finalScore('terminal-bench', [task(null, 'PASS')]))).toBe('record_score_mismatch');
  });
});
