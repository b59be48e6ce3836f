import type { AgentPackage } from '../agent/types.ts';
import type { TaskCache } from '../tasks/types.ts';
import type { TrackTask } from '../tracks/track.ts';
import type { Capacity } from '../trial/capacity.ts';
import type { TrialAgent, TrialContext } from '../trial/session.ts';
import type { PinnedMechanism } from '../wire/mechanism.ts';
import type { EvalPlan } from '../wire/plan.ts';
import type { ScoreRecord } from '../wire/score-record.ts';

/** A task that preflight has made ready, with the agent as it enters that task's containers. */
export interface OrderedTask extends TrackTask {
  agent: TrialAgent;
}

/** What preflight hands on: a plan that can be run, and everything it needs. */
export interface Order {
  plan: EvalPlan;
  pinned: PinnedMechanism;
  cache: TaskCache;
  agentPackage: AgentPackage;
  /** As the record lists them. */
  dependencies: ScoreRecord['dependencies'];
  tasks: readonly OrderedTask[];
  context: TrialContext;
  capacity: Capacity;
}

/** An order whose tests can be read: opened by the keys of a grant, or never sealed. */
export interface UnlockedOrder extends Order {
  /** 32 hex digits; null: the plan asks for no key. */
  grantId: string | null;
}
