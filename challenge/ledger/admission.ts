import { EvaluatorError } from '../../guest/errors.ts';
import type { Run } from './ledger.ts';
import { isOpen } from './machine.ts';

/**
 * An agent has one run that counts: while one is open, was scored, or was started and brought nothing, no
 * other is prepared. Otherwise it would pay to start several and to deliver the best (spec/07).
 * @param earlier the sealed runs of the same agent.
 * @throws agent_run_open, agent_already_scored, agent_no_result.
 */
export function verifyNoStandingRun(
  earlier: readonly (Pick<Run, 'evalRunId' | 'state'> & { started: boolean })[],
): void {
  for (const { evalRunId, state, started } of earlier) {
    if (isOpen(state)) {
      throw new EvaluatorError('agent_run_open', `prepare: this agent has an open run, ${evalRunId}`);
    }
    if (state === 'accepted') {
      throw new EvaluatorError('agent_already_scored', `prepare: this agent was scored in ${evalRunId}`);
    }
    // A started run that was rejected was not delivered either: a forged RESULT must not buy a second try.
    if (state === 'no_result' || (state === 'rejected' && started)) {
      throw new EvaluatorError(
        'agent_no_result',
        `prepare: ${evalRunId} of this agent started and brought no result; an operator can re-open it`,
      );
    }
  }
}
