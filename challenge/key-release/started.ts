import { EvaluatorError } from '../../guest/errors.ts';
import type { Started, StartedReceipt } from '../../guest/wire/key-release.ts';
import type { Run } from '../ledger/ledger.ts';
import type { KeyReleaseDeps } from './exchange.ts';

/**
 * Commits that agents start under a grant: from here on this attempt is the one that counts, and no further
 * key is given. The same notice again gives the same receipt.
 * @param spkiDigest of the certificate on this connection, hex.
 * @throws key_request_ids_mismatch, grant_unknown, grant_certificate_mismatch, grant_superseded, run_expired,
 *   run_closed.
 */
export function noteStarted(
  run: Run,
  notice: Started,
  spkiDigest: string,
  { ledger, now }: Pick<KeyReleaseDeps, 'ledger' | 'now'>,
): StartedReceipt {
  if (notice.eval_run_id !== run.evalRunId) {
    throw new EvaluatorError('key_request_ids_mismatch', 'started: eval_run_id is not that of the URL');
  }
  const { evalRunId, grantId, receivedAtMs } = ledger.start(
    run.evalRunId,
    notice.grant_id,
    spkiDigest,
    now(),
  );
  return {
    schema_version: 1,
    eval_run_id: evalRunId,
    grant_id: grantId,
    event: 'started',
    received_at_ms: receivedAtMs,
  };
}
