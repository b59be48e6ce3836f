import { EvaluatorError } from '../../guest/errors.ts';

/**
 * The life of a run. `parked`: received, but no judgement was possible (no collateral). `no_result`: it
 * started and nothing was delivered; it counts as score 0, where `expired` counts as nothing (spec/07).
 */
export const RUN_STATES = [
  'prepared',
  'received',
  'parked',
  'accepted',
  'rejected',
  'expired',
  'no_result',
] as const;
export type RunState = (typeof RUN_STATES)[number];
export type RunEvent = 'receive' | 'park' | 'accept' | 'reject' | 'expire' | 'abandon';

/** Closed: what is not listed cannot happen. States without a row entry are terminal. */
export const TRANSITIONS: Readonly<Record<RunState, Readonly<Partial<Record<RunEvent, RunState>>>>> = {
  prepared: { receive: 'received', expire: 'expired', abandon: 'no_result' },
  received: { accept: 'accepted', reject: 'rejected', park: 'parked' },
  parked: { accept: 'accepted', reject: 'rejected', expire: 'expired' },
  accepted: {},
  rejected: {},
  expired: {},
  no_result: {},
};

export function isTerminal(state: RunState): boolean {
  return Object.keys(TRANSITIONS[state]).length === 0;
}

/** @throws ledger_transition_refused. */
export function nextState(state: RunState, event: RunEvent): RunState {
  const next = TRANSITIONS[state][event];
  if (next === undefined) {
    throw new EvaluatorError('ledger_transition_refused', `ledger: a run that is ${state} cannot ${event}`);
  }
  return next;
}
