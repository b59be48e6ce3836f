import { EvaluatorError } from '../../guest/errors.ts';

/**
 * The life of a run; docs/ledger.md says it in words. `granted`: a guest holds the keys. `started`: agents
 * run, this attempt is the one that counts. `parked`: received, but no judgement was possible (no collateral).
 * `no_result`: it started and nothing was delivered; it counts as score 0, where `expired` counts as nothing.
 * `reopened`: an operator set the outcome aside, so that the agent may be run again (spec/07).
 */
export const RUN_STATES = [
  'prepared',
  'granted',
  'started',
  'received',
  'parked',
  'accepted',
  'rejected',
  'expired',
  'no_result',
  'reopened',
] as const;
export type RunState = (typeof RUN_STATES)[number];

export const RUN_EVENTS = [
  'grant',
  'start',
  'receive',
  'park',
  'accept',
  'reject',
  'expire',
  'abandon',
  'reopen',
] as const;
export type RunEvent = (typeof RUN_EVENTS)[number];

/** Closed: what is not listed cannot happen. */
export const TRANSITIONS: Readonly<Record<RunState, Readonly<Partial<Record<RunEvent, RunState>>>>> = {
  prepared: { grant: 'granted', receive: 'received', expire: 'expired' },
  granted: { grant: 'granted', start: 'started', receive: 'received', expire: 'expired' },
  started: { receive: 'received', abandon: 'no_result' },
  received: { accept: 'accepted', reject: 'rejected', park: 'parked' },
  parked: { accept: 'accepted', reject: 'rejected', expire: 'expired' },
  accepted: {},
  rejected: { reopen: 'reopened' },
  expired: {},
  no_result: { reopen: 'reopened' },
  reopened: {},
};

/** States in which a RESULT may still come; their plan's expiry ends them. */
export const AWAITING = ['prepared', 'granted', 'started'] as const satisfies readonly RunState[];
/** States in which the run's outcome is still to come. */
export const OPEN = [...AWAITING, 'received', 'parked'] as const satisfies readonly RunState[];

export function isOpen(state: RunState): boolean {
  return OPEN.some((open) => open === state);
}

/** True while a RESULT may still be received. */
export function isAwaiting(state: RunState): boolean {
  return AWAITING.some((awaiting) => awaiting === state);
}

/** @throws ledger_transition_refused. */
export function nextState(state: RunState, event: RunEvent): RunState {
  const next = TRANSITIONS[state][event];
  if (next === undefined) {
    throw new EvaluatorError('ledger_transition_refused', `ledger: a run that is ${state} cannot ${event}`);
  }
  return next;
}
