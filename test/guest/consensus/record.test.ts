import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { verifyPlanAgainstMechanism } from '../../../guest/consensus/plan-mechanism.ts';
import { verifyRecord } from '../../../guest/consensus/record.ts';
import type { Code } from '../../../guest/errors.ts';
import { encodeF64be } from '../../../guest/wire/f64.ts';
import { type PinnedMechanism, parseMechanism, type TrackRules } from '../../../guest/wire/mechanism.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { planDigest } from '../../../guest/wire/plan.ts';
import type { RepRecord, ScoreRecord, TaskRecord } from '../../../guest/wire/score-record.ts';
import { planKeys, planTask, RANKED, rep, scoreRecord, signedPlan } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

const keys = planKeys();
const shipped = parseMechanism(readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url)));

function planOf(overrides: Partial<EvalPlan> = {}): EvalPlan {
  return signedPlan(keys, { mechanism_digest: shipped.digest, ...overrides });
}

/** The shipped mechanism with one track's rules changed or added; its digest stays. */
function withRules(track: string, rules: Partial<TrackRules>): PinnedMechanism {
  const base = shipped.mechanism.tracks['terminal-bench'];
  if (!base) throw new Error('no terminal-bench track');
  const tracks = { ...shipped.mechanism.tracks, [track]: { ...base, ...rules } };
  return { digest: shipped.digest, mechanism: { ...shipped.mechanism, tracks } };
}

const HASH = 'cd'.repeat(32);
const plan = planOf();
const good = scoreRecord(plan);

const inTask =
  (index: number, change: (task: TaskRecord) => Partial<TaskRecord>) => (record: ScoreRecord) => ({
    tasks: record.tasks.map((task, i) => (i === index ? { ...task, ...change(task) } : task)),
  });
const inRep = (taskIndex: number, repIndex: number, change: Partial<RepRecord>) =>
  inTask(taskIndex, (task) => ({
    reps: task.reps.map((one, i) => (i === repIndex ? { ...one, ...change } : one)),
  }));

describe('verifyRecord', () => {
  it('accepts what the plan ordered and the reps say', () => {
    expect(() => verifyRecord(good, plan, shipped)).not.toThrow();
    const ranked = planOf(RANKED);
    expect(() => verifyRecord(scoreRecord(ranked), ranked, shipped)).not.toThrow();
  });

  const limits = (good.tasks[0] as TaskRecord).limits;
  const cases: [string, Code, (record: ScoreRecord) => Partial<ScoreRecord>][] = [
    ['another run', 'record_run_mismatch', () => ({ eval_run_id: 'run-002' })],
    ['another plan', 'record_plan_mismatch', () => ({ plan_digest: HASH })],
    ['another mechanism', 'record_mechanism_mismatch', () => ({ mechanism_digest: HASH })],
    ['another cache', 'record_cache_mismatch', () => ({ cache_digest: HASH })],
    ['a toolchain the plan does not name', 'record_toolchain_mismatch', () => ({ toolchain_digest: HASH })],
    ['another runtime image', 'record_runtime_mismatch', () => ({ agent_runtime_image: `sha256:${HASH}` })],
    ['a grant without a key release', 'record_grant_mismatch', () => ({ grant_id: 'ab'.repeat(16) })],
    ['another track', 'record_track_mismatch', () => ({ track: 'skills' })],
    ['another r', 'record_r_mismatch', () => ({ r: 2 })],
    ['another rank', 'record_ranked_mismatch', () => ({ ranked: true })],
    ['a task dropped', 'record_tasks_mismatch', (record) => ({ tasks: record.tasks.slice(0, 1) })],
    ['tasks in another order', 'record_tasks_mismatch', (record) => ({ tasks: record.tasks.toReversed() })],
    ['a task relabelled', 'record_tasks_mismatch', inTask(0, () => ({ task_id: 'task-c' }))],
    ['a rep dropped', 'record_reps_mismatch', inTask(0, (task) => ({ reps: task.reps.slice(0, 2) }))],
    [
      'a rep more than ordered',
      'record_reps_mismatch',
      inTask(0, (task) => ({ reps: [...task.reps, rep('task-a', 3, 1)] })),
    ],
    ['a rep index twice', 'record_reps_mismatch', inRep(0, 1, { rep: 0 })],
    [
      'reps in another order',
      'record_reps_mismatch',
      inTask(0, (task) => ({ reps: task.reps.toReversed() })),
    ],
    [
      'a container behind two reps of a task',
      'record_container_repeated',
      inRep(0, 1, { container_id: rep('task-a', 0, 1).container_id }),
    ],
    [
      'a container behind reps of two tasks',
      'record_container_repeated',
      inRep(1, 2, { container_id: rep('task-a', 0, 1).container_id }),
    ],
    [
      'a probe behind reps of two tasks',
      'record_probe_repeated',
      inRep(1, 0, { probe_sha256: rep('task-a', 2, 1).probe_sha256 }),
    ],
    ['a completed rep without value', 'record_outcome_inconsistent', inRep(0, 0, { value: null })],
    ['a completed rep with a failure', 'record_outcome_inconsistent', inRep(0, 0, { failure: 'liveness' })],
    ['a failed rep with a value', 'record_outcome_inconsistent', inRep(0, 0, { outcome: 'failed' })],
    ['a failed rep called completed', 'record_outcome_inconsistent', inRep(0, 1, { outcome: 'completed' })],
    ['a failed rep without failure', 'record_outcome_inconsistent', inRep(0, 1, { failure: null })],
    [
      'a verdict where a reward belongs',
      'record_value_mismatch',
      inRep(0, 0, { value: { verdict: 'ALLOW' } }),
    ],
    ['a reward that is not f64be', 'f64be_invalid', inRep(0, 0, { value: { reward_f64be: 'f'.repeat(16) } })],
    [
      'a partial reward under vote',
      'record_value_not_publishable',
      inRep(0, 0, { value: { reward_f64be: encodeF64be(0.5) } }),
    ],
    ['another verifier', 'record_verifier_mismatch', inRep(0, 0, { verifier_mode: 'live' })],
    ['a completed rep without verifier', 'record_verifier_mismatch', inRep(0, 0, { verifier_mode: null })],
    [
      'a failed rep with another verifier',
      'record_verifier_mismatch',
      inRep(0, 1, { verifier_mode: 'live' }),
    ],
    ['CPU over budget', 'record_budget_exceeded', inRep(0, 0, { cpu_ms: limits.cpu_budget_ms + 1 })],
    ['wall over budget', 'record_budget_exceeded', inRep(0, 0, { wall_ms: limits.wall_budget_ms + 1 })],
    ['more retries than allowed', 'record_retries_exceeded', inRep(0, 0, { start_retries: 3 })],
    ['another image than ordered', 'record_image_mismatch', inRep(0, 0, { image_id: `sha256:${HASH}` })],
    ['retries that no rep has', 'record_infra_inconsistent', () => ({ infra: { faults: 1, retried: 1 } })],
    [
      'a package that no mechanism lists',
      'record_dependencies_invalid',
      () => ({ dependencies: [{ name: 'idna', version: '3.10', sha256: HASH }] }),
    ],
    ['a rep retried in silence', 'record_infra_inconsistent', inRep(0, 0, { start_retries: 1 })],
    ['another count of completed reps', 'record_completed_mismatch', inTask(0, () => ({ completed: 3 }))],
    ['another verdict', 'record_verdict_mismatch', inTask(1, () => ({ verdict: 'PASS' }))],
    ['no verdict', 'record_verdict_mismatch', inTask(0, () => ({ verdict: null }))],
    ['another score', 'record_score_mismatch', inTask(1, () => ({ score_f64be: encodeF64be(1) }))],
    ['no score', 'record_score_mismatch', inTask(1, () => ({ score_f64be: null }))],
    [
      'a final score',
      'record_final_mismatch',
      (r) => ({ final: { ...r.final, score_f64be: encodeF64be(1) } }),
    ],
    ['passed tasks', 'record_final_mismatch', (r) => ({ final: { ...r.final, passed_tasks: 2 } })],
    ['total tasks', 'record_final_mismatch', (r) => ({ final: { ...r.final, total_tasks: 3 } })],
  ];
  it.each(cases)('refuses %s: %s', (_, code, change) => {
    expect(codeOf(() => verifyRecord({ ...good, ...change(good) }, plan, shipped))).toBe(code);
  });

  it('allows a completed rep that used its budgets to the last millisecond', () => {
    const change = inRep(0, 0, { cpu_ms: limits.cpu_budget_ms, wall_ms: limits.wall_budget_ms });
    expect(() => verifyRecord({ ...good, ...change(good) }, plan, shipped)).not.toThrow();
  });

  it('says nothing about the readings of a failed rep', () => {
    const change = inRep(0, 1, { cpu_ms: limits.cpu_budget_ms + 90, wall_ms: limits.wall_budget_ms + 90 });
    expect(() => verifyRecord({ ...good, ...change(good) }, plan, shipped)).not.toThrow();
  });

  it('allows retries that are counted, and faults beyond them', () => {
    const change = inRep(0, 0, { start_retries: 2 });
    const record = { ...good, ...change(good), infra: { faults: 3, retried: 2 } };
    expect(() => verifyRecord(record, plan, shipped)).not.toThrow();
    expect(codeOf(() => verifyRecord({ ...record, infra: { faults: 1, retried: 2 } }, plan, shipped))).toBe(
      'record_infra_inconsistent',
    );
  });

  it('allows probes to be absent', () => {
    const tasks = good.tasks.map((task) => ({
      ...task,
      reps: task.reps.map((one) => ({ ...one, probe_sha256: null })),
    }));
    expect(() => verifyRecord({ ...good, tasks }, plan, shipped)).not.toThrow();
  });

  it('wants one image behind all reps of a task that is ordered by registry digest', () => {
    const image = `registry.invalid/task@sha256:${HASH}`;
    const pulled = planOf({ tasks: [planTask('task-a', { image }), planTask('task-b')] });
    const record = { ...good, plan_digest: planDigest(pulled) };
    expect(() => verifyRecord(record, pulled, shipped)).not.toThrow();
    const moved = inRep(0, 2, { image_id: `sha256:${HASH}` })(record);
    expect(codeOf(() => verifyRecord({ ...record, ...moved }, pulled, shipped))).toBe(
      'record_image_mismatch',
    );
  });

  it('wants the budgets that the plan pins', () => {
    const budgets = { cpu_budget_ms: 60_000, wall_budget_ms: 60_000 };
    const pinned = planOf({ tasks: [planTask('task-a', { budgets }), planTask('task-b')] });
    const record = { ...good, plan_digest: planDigest(pinned) };
    expect(() => verifyRecord(record, pinned, shipped)).not.toThrow();
    for (const key of ['cpu_budget_ms', 'wall_budget_ms'] as const) {
      const change = inTask(0, (task) => ({ limits: { ...task.limits, [key]: 60_001 } }))(record);
      expect(codeOf(() => verifyRecord({ ...record, ...change }, pinned, shipped))).toBe(
        'record_limits_mismatch',
      );
    }
  });

  it.each<Partial<TrackRules>>([
    { cpu_budget_ms: 8000 },
    { wall_budget_ms: 8000 },
    { cpus: 2 },
    { memory_mb: 512 },
  ])('wants the limits that the mechanism pins: %o', (rules) => {
    const pinned = withRules('terminal-bench', rules);
    expect(codeOf(() => verifyRecord(good, plan, pinned))).toBe('record_limits_mismatch');
  });

  it('under mean, wants rewards in steps of 1/64', () => {
    const mean = planOf({ policy: 'mean' });
    const record = (reward: number): ScoreRecord => {
      const rewards = [reward, reward, reward].map((one, i) => rep('task-a', i, one));
      const change = inTask(0, () => ({
        reps: rewards,
        completed: 3,
        verdict: 'FAIL',
        score_f64be: encodeF64be(reward),
      }));
      const final = { score_f64be: encodeF64be(reward / 2), passed_tasks: 0, total_tasks: 2 };
      return { ...good, plan_digest: planDigest(mean), ...change(good), final };
    };
    expect(() => verifyRecord(record(33 / 64), mean, shipped)).not.toThrow();
    expect(codeOf(() => verifyRecord(record(33 / 128), mean, shipped))).toBe('record_value_not_publishable');
  });

  it('reads behavioural records: verdicts, no score, no verifier', () => {
    const rules = { policy: null, failed_reps: 'excluded', metric: 'clamped_mcc' } as const;
    const skills = planOf({ track: 'skills', policy: null });
    const change = (task: TaskRecord): TaskRecord => ({
      ...task,
      verdict: 'WARN',
      score_f64be: null,
      completed: 3,
      reps: task.reps.map((one) => ({
        ...one,
        outcome: 'completed',
        failure: null,
        value: { verdict: 'WARN' },
        verifier_mode: null,
      })),
    });
    const record: ScoreRecord = {
      ...good,
      plan_digest: planDigest(skills),
      track: 'skills',
      tasks: good.tasks.map(change),
      final: { score_f64be: null, passed_tasks: null, total_tasks: 2 },
    };
    const pinned = withRules('skills', rules);
    expect(() => verifyRecord(record, skills, pinned)).not.toThrow();
    const scored = { ...record, ...inTask(0, () => ({ score_f64be: encodeF64be(1) }))(record) };
    expect(codeOf(() => verifyRecord(scored, skills, pinned))).toBe('record_score_mismatch');
    const unprobed = { ...record, ...inRep(0, 0, { probe_sha256: null })(record) };
    expect(codeOf(() => verifyRecord(unprobed, skills, pinned))).toBe('record_probe_missing');
    const verified = { ...record, ...inRep(0, 0, { verifier_mode: 'restart' })(record) };
    expect(codeOf(() => verifyRecord(verified, skills, pinned))).toBe('record_verifier_mismatch');
  });
});

describe('verifyPlanAgainstMechanism', () => {
  const refused = (one: EvalPlan, pinned: PinnedMechanism) =>
    codeOf(() => verifyPlanAgainstMechanism(one, pinned));

  it('accepts a plan that keeps to the mechanism', () => {
    expect(() => verifyPlanAgainstMechanism(plan, shipped)).not.toThrow();
    expect(() => verifyPlanAgainstMechanism(plan, withRules('terminal-bench', { r: 3 }))).not.toThrow();
  });

  it('refuses another mechanism and an unknown track', () => {
    expect(refused(planOf({ mechanism_digest: HASH }), shipped)).toBe('mechanism_digest_mismatch');
    expect(refused(planOf({ track: 'constructor', policy: null }), shipped)).toBe('track_unknown');
    expect(refused(planOf({ track: 'chess' }), withRules('chess', {}))).toBe('track_unknown');
  });

  const budgets = { cpu_budget_ms: 8000, wall_budget_ms: 24_000 };
  it.each<[string, Partial<EvalPlan>, Partial<TrackRules>]>([
    ['r', {}, { r: 5 }],
    ['a pinned policy', {}, { policy: 'mean' }],
    ['a policy where there is none', {}, { policy: null }],
    ['a missing policy', { policy: null }, { policy: 'plan' }],
    ['min_completed above r', {}, { min_completed: 4 }],
    ['the metric', {}, { metric: 'f2' }],
    ['a CPU budget', { tasks: [planTask('a', { budgets })] }, { cpu_budget_ms: 8001 }],
    ['a wall budget', { tasks: [planTask('a', { budgets })] }, { wall_budget_ms: 24_001 }],
    ['more tasks than a round has', {}, { tasks_per_round: 1 }],
    ['fewer tasks than a ranked round has', RANKED, { tasks_per_round: 3 }],
    [
      'an open network',
      { tasks: [planTask('a', { network: 'open' })] },
      { networks: { ranked: ['none'], calibration: ['none', 'inference'] } },
    ],
    [
      'a network that is for calibration alone',
      { ...RANKED, tasks: [planTask('a', { network: 'inference' })] },
      { networks: { ranked: ['none'], calibration: ['none', 'inference'] } },
    ],
  ])('refuses a contradiction in %s', (_, overrides, rules) => {
    expect(refused(planOf(overrides), withRules('terminal-bench', rules))).toBe('plan_contradicts_mechanism');
  });

  it('accepts a whole ranked round, and a part of one that only calibrates', () => {
    const two = withRules('terminal-bench', { tasks_per_round: 2 });
    expect(() => verifyPlanAgainstMechanism(planOf(RANKED), two)).not.toThrow();
    const three = withRules('terminal-bench', { tasks_per_round: 3 });
    expect(() => verifyPlanAgainstMechanism(plan, three)).not.toThrow();
  });

  it('refuses an audit whose agent would not be dead when it is read', () => {
    const live = planOf({ track: 'skills', policy: null, tasks: [planTask('a', { verifier: 'live' })] });
    expect(refused(live, shipped)).toBe('plan_contradicts_mechanism');
    const restart = planOf({ track: 'skills', policy: null, tasks: [planTask('a')] });
    expect(() => verifyPlanAgainstMechanism(restart, shipped)).not.toThrow();
  });

  it('accepts budgets that the mechanism leaves to the task', () => {
    const one = planOf({ tasks: [planTask('a', { budgets })] });
    expect(() => verifyPlanAgainstMechanism(one, shipped)).not.toThrow();
  });
});
