import type { Composed } from '../../compose/parse.ts';
import { isComplete } from '../../compose/verdict.ts';
import { connectGuestAgent } from '../../guest/attest/dstack.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import type { AllowlistEntry, VmShape } from '../../guest/wire/measurement.ts';
import { readAttestation } from '../measure/attestation.ts';
import { entryOfCapture, entryOfCompose } from '../measure/entry.ts';

const QUOTE_WITHIN_MS = 60_000;

/**
 * The allowlist entry of an image on a simulated machine, made as `evaluator measure` makes one: the compose hash
 * from what is to be deployed, the registers and the key provider from a quote of the machine.
 * @throws guest_agent_*, measurement_incomplete, and the codes of a quote or log that cannot be read.
 */
export async function publishedEntry(
  machine: { socket: string; vmShape: VmShape },
  composed: Composed,
  gitRevision: string,
): Promise<AllowlistEntry> {
  const agent = connectGuestAgent({ socketPath: machine.socket, deadlineMs: QUOTE_WITHIN_MS });
  const { quote, eventLog } = await agent.getQuote(Buffer.alloc(64));
  const described = { osVersion: null, shape: null, imageRef: composed.imageRef, gitRevision };
  const { compose_hash } = entryOfCompose(composed, described).measurement;
  const captured = entryOfCapture(readAttestation(quote, eventLog), described);
  const entry = {
    ...captured,
    measurement: { ...captured.measurement, compose_hash },
    vm_shape: machine.vmShape,
    os_version: 'simulated',
  };
  if (isComplete(entry)) return entry;
  throw new EvaluatorError('measurement_incomplete', 'simulated machine: something in its quote is UNKNOWN');
}
