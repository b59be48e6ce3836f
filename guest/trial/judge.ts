import type { FailureCode, Limits } from '../wire/score-record.ts';

/** What ended the agent, as our timer, our reading and the engine saw it; never its own words (spec/03). */
export type EndCause = 'agent_ended' | 'cpu_budget' | 'wall_backstop' | 'disk_limit' | 'container_ended';

/** Counters of one agent's life, from its exec's start to its end. */
export interface Reading {
  wallMs: number;
  cpuMs: number;
  memoryPeakBytes: number;
  oomKills: number;
  throttledMs: number;
}

export interface Observation extends Reading {
  cause: EndCause;
  /** Of the agent's exec; null while it had not ended. */
  exitCode: number | null;
  /** 0: the engine never started the command. */
  pid: number;
  /** The container's main process was killed by the kernel for memory. */
  containerOomKilled: boolean;
}

/**
 * The failure that an observation shows, or null: the rep is completed. Exit codes prove nothing by
 * themselves; an agent that fakes 137 after a real OOM kill fails its own rep.
 */
export function judge(seen: Observation, limits: Limits): FailureCode | null {
  if (seen.cpuMs >= limits.cpu_budget_ms || seen.cause === 'cpu_budget') return 'cpu_budget';
  if (seen.wallMs >= limits.wall_budget_ms || seen.cause === 'wall_backstop') return 'wall_backstop';
  if (seen.cause === 'disk_limit') return 'disk_limit';
  if (seen.cause === 'container_ended') return seen.containerOomKilled ? 'memory_limit' : 'liveness';
  if (seen.pid === 0) return 'agent_start';
  if (seen.oomKills > 0 && seen.exitCode === 137) return 'memory_limit';
  return null;
}
