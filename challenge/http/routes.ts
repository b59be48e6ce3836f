import type { IncomingMessage } from 'node:http';
import { EvaluatorError } from '../../guest/errors.ts';
import { MAX_RESULT_BYTES } from '../../guest/wire/result.ts';
import type { Acceptor } from '../accept.ts';
import type { Ledger, Run } from '../ledger/ledger.ts';
import { receiptDocument, receiveResult } from '../receive.ts';
import { type PlaceCaps, Places } from './places.ts';
import { RateWindow } from './rate-window.ts';
import { jsonReply, type Reply } from './replies.ts';
import { authorisedRun, type BodyLimit, readBody, verifyAnnouncedSize } from './requests.ts';

/** Bodies held in memory at once, of a run one; the next one is asked to come again. */
const BODIES: PlaceCaps = { total: 8, perOwner: 1 };
const RESULTS_PER_MINUTE = 10;
/** Reading a hostile body of the largest size takes seconds of the one thread there is. */
const RESULT_BYTES_PER_MINUTE = 2 * MAX_RESULT_BYTES;
const RESULT_BODY: BodyLimit = { maxBytes: MAX_RESULT_BYTES, code: 'result_too_large' };
const PATH = /^\/evaluation\/v1\/runs\/([^/?]{1,384})(|\/result|\/artifact)$/;

export interface RouteDeps {
  ledger: Ledger;
  acceptor: Acceptor;
  /** The agent's ZIP of a run. */
  artifact: (run: Run) => Buffer;
  /** Milliseconds since the epoch. */
  now: () => number;
}

interface Target {
  evalRunId: string;
  resource: string;
}

function parseTarget(url: string): Target {
  const [, encodedId, resource] = PATH.exec(url) ?? [];
  try {
    if (encodedId !== undefined && resource !== undefined) {
      return { evalRunId: decodeURIComponent(encodedId), resource };
    }
  } catch {
    // A malformed escape names nothing that exists.
  }
  throw new EvaluatorError('route_unknown', 'request: no such route');
}

function requireMethod(request: IncomingMessage, method: 'GET' | 'POST'): void {
  if (request.method !== method)
    throw new EvaluatorError('method_not_allowed', `request: only ${method} here`);
}

/** The routes of spec/07 that a guest uses; every error is an EvaluatorError with its code. */
export function createRoutes({ ledger, acceptor, artifact, now }: RouteDeps) {
  const rate = new RateWindow(RESULTS_PER_MINUTE, 60_000);
  const volume = new RateWindow(RESULT_BYTES_PER_MINUTE, 60_000);
  const bodies = new Places(BODIES);

  const postResult = async (request: IncomingMessage, { evalRunId }: Target): Promise<Reply> => {
    requireMethod(request, 'POST');
    verifyAnnouncedSize(request, RESULT_BODY);
    authorisedRun(request, ledger.run(evalRunId));
    rate.take(evalRunId, now());
    const body = await bodies.hold(evalRunId, () => readBody(request, RESULT_BODY));
    volume.take(evalRunId, now(), body.length);
    // Read again: while the body came in, another one may have been received.
    const run = authorisedRun(request, ledger.run(evalRunId));
    const { kind, receipt } = receiveResult(ledger, run, body, now());
    if (kind === 'received') acceptor.enqueue(evalRunId);
    return jsonReply(kind === 'received' ? 202 : 200, receiptDocument(receipt));
  };

  const getArtifact = (request: IncomingMessage, { evalRunId }: Target): Reply => {
    requireMethod(request, 'GET');
    const run = authorisedRun(request, ledger.run(evalRunId));
    if (now() >= run.expiresAtMs) throw new EvaluatorError('run_expired', 'run: its plan has expired');
    return { status: 200, contentType: 'application/zip', body: artifact(run) };
  };

  const getRun = (request: IncomingMessage, { evalRunId }: Target): Reply => {
    requireMethod(request, 'GET');
    const run = authorisedRun(request, ledger.run(evalRunId));
    return jsonReply(200, {
      eval_run_id: run.evalRunId,
      state: run.state,
      reason_code: run.reasonCode,
      score_f64be: run.scoreF64be,
    });
  };

  return async (request: IncomingMessage): Promise<Reply> => {
    const target = parseTarget(request.url ?? '');
    if (target.resource === '/result') return postResult(request, target);
    if (target.resource === '/artifact') return getArtifact(request, target);
    return getRun(request, target);
  };
}
