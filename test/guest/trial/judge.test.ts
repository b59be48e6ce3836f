import { describe, expect, it } from 'vitest';
import { judge, type Observation } from '../../../guest/trial/judge.ts';
import type { Limits } from '../../../guest/wire/score-record.ts';

const LIMITS: Limits = {
  nano_cpus: 1e9,
  memory_bytes: 1,
  storage_bytes: 1,
  cpu_budget_ms: 1000,
  wall_budget_ms: 5000,
};
const SEEN: Observation = {
  cause: 'agent_ended',
  exitCode: 0,
  pid: 42,
  containerOomKilled: false,
  wallMs: 10,
  cpuMs: 10,
  memoryPeakBytes: 1,
  oomKills: 0,
  throttledMs: 0,
};

describe('judge', () => {
  it.each<[string, Partial<Observation>, string | null]>([
    ['an agent that ended in time', {}, null],
    ['any exit code', { exitCode: 137 }, null],
    ['an OOM kill of a child', { oomKills: 2, exitCode: 0 }, null],
    ['an OOM kill of the agent', { oomKills: 1, exitCode: 137 }, 'memory_limit'],
    ['a command that never started', { pid: 0, exitCode: 126 }, 'agent_start'],
    ['the last millisecond of CPU', { cpuMs: 1000 }, 'cpu_budget'],
    ['one below it', { cpuMs: 999 }, null],
    ['the last millisecond of wall', { wallMs: 5000 }, 'wall_backstop'],
    ['both budgets over', { wallMs: 5000, cpuMs: 1000 }, 'cpu_budget'],
    ['our CPU reading', { cause: 'cpu_budget', exitCode: null }, 'cpu_budget'],
    ['our timer', { cause: 'wall_backstop', exitCode: null }, 'wall_backstop'],
    ['a full layer', { cause: 'disk_limit', exitCode: null }, 'disk_limit'],
    ['a container ended from inside', { cause: 'container_ended', exitCode: null }, 'liveness'],
    ['a holder killed for memory', { cause: 'container_ended', containerOomKilled: true }, 'memory_limit'],
    ['a container ended when CPU was over', { cause: 'container_ended', cpuMs: 1200 }, 'cpu_budget'],
  ])('%s', (_, change, failure) => {
    expect(judge({ ...SEEN, ...change }, LIMITS)).toBe(failure);
  });
});
