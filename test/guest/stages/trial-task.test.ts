import { describe, expect, it } from 'vitest';
import { limitsOf, toTrialTask, verifyPlannedTask } from '../../../guest/stages/trial-task.ts';
import { parseTaskToml } from '../../../guest/tasks/task-toml.ts';
import type { CachedTask } from '../../../guest/tasks/types.ts';
import type { TrackRules } from '../../../guest/wire/mechanism.ts';
import type { PlanTask } from '../../../guest/wire/plan.ts';
import { planTask } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

const TOML = `[agent]
timeout_sec = 90.5
[verifier]
timeout_sec = 30.0
[environment]
cpus = 2
memory_mb = 2048
storage_mb = 8192
allow_internet = false
`;
const planned = planTask('a');
const cached: CachedTask = {
  taskId: 'a',
  taskDigest: planned.task_digest,
  track: 'terminal-bench',
  config: parseTaskToml(Buffer.from(TOML), 'task.toml'),
  instruction: Buffer.from('do'),
  image: planned.image,
  imageSource: 'built',
  imageBase: 'stand-in',
  evidence: { kind: 'none', passed: null },
  verifierMode: 'restart',
  artifactPaths: [],
};
const rules = (some: Partial<TrackRules> = {}) =>
  ({
    cpu_budget_ms: 'task',
    wall_budget_ms: 'task',
    cpus: 'task',
    memory_mb: 'task',
    pids: 512,
    ...some,
  }) as TrackRules;

describe('limitsOf', () => {
  it("are the task's own where nobody pins them; 2048 MiB are not negative", () => {
    expect(limitsOf(cached, planned, rules())).toEqual({
      nano_cpus: 2e9,
      memory_bytes: 2_147_483_648,
      storage_bytes: 8_589_934_592,
      cpu_budget_ms: 181_000,
      wall_budget_ms: 90_500,
    });
  });

  it("are the mechanism's over the task's, and the plan's over both", () => {
    const pinned = rules({ cpu_budget_ms: 8000, wall_budget_ms: 24_000, cpus: 1, memory_mb: 512 });
    expect(limitsOf(cached, planned, pinned)).toEqual({
      cpu_budget_ms: 8000,
      wall_budget_ms: 24_000,
      nano_cpus: 1e9,
      memory_bytes: 512 * 1024 * 1024,
      storage_bytes: 8_589_934_592,
    });
    const budgets = { cpu_budget_ms: 1000, wall_budget_ms: 2000 };
    expect(limitsOf(cached, { ...planned, budgets }, pinned)).toMatchObject(budgets);
  });
});

describe('toTrialTask', () => {
  it('takes times in ms, and the network of the plan', () => {
    const image = { id: 'sha256:1', workdir: '/app', env: [], source: 'built' } as const;
    expect(toTrialTask(cached, planned, rules(), image)).toMatchObject({
      taskId: 'a',
      image,
      network: 'none',
      pids: 512,
      verifier: { mode: 'restart', artifactPaths: [], timeoutMs: 30_000 },
    });
  });

  it('takes what mode artifact carries over from the manifest, which a bake has resolved', () => {
    const image = { id: 'sha256:1', workdir: '/app', env: [], source: 'built' } as const;
    const task: CachedTask = { ...cached, verifierMode: 'artifact', artifactPaths: ['/srv'] };
    const verifier = { mode: 'artifact', artifactPaths: ['/srv'] };
    expect(toTrialTask(task, { ...planned, verifier: 'artifact' }, rules(), image)).toMatchObject({
      verifier,
    });
  });
});

describe('verifyPlannedTask', () => {
  it('takes the task that was ordered', () => {
    expect(() => verifyPlannedTask(cached, planned, 'terminal-bench')).not.toThrow();
  });

  it.each<[string, Partial<PlanTask>, string, string]>([
    ['another digest', { task_digest: '0'.repeat(64) }, 'terminal-bench', 'task_digest_mismatch'],
    ['another image', { image: `sha256:${'0'.repeat(64)}` }, 'terminal-bench', 'task_digest_mismatch'],
    ['another verifier mode', { verifier: 'live' }, 'terminal-bench', 'task_digest_mismatch'],
    ['another track', {}, 'skills', 'task_digest_mismatch'],
    [
      'an open network that the task does not allow',
      { network: 'open' },
      'terminal-bench',
      'plan_inconsistent',
    ],
  ])('refuses %s', (_, change, track, code) => {
    expect(codeOf(() => verifyPlannedTask(cached, { ...planned, ...change }, track))).toBe(code);
  });
});
