import type { IncomingMessage } from 'node:http';
import { CODES, type Code, EvaluatorError } from '../../guest/errors.ts';
import { parseAssignment } from '../../guest/wire/assignment.ts';
import {
  MAX_REVIEW_REPORT_BYTES,
  parseModelCallStarted,
  parseReviewFailure,
} from '../../guest/wire/review.ts';
import { type PlaceCaps, Places } from '../http/places.ts';
import { RateWindow } from '../http/rate-window.ts';
import { jsonReply, type Reply } from '../http/replies.ts';
import { type BodyLimit, carriesToken, readBodyWithin, verifyAnnouncedSize } from '../http/requests.ts';
import type { ReviewAcceptor } from './accept.ts';
import type { ReviewLedger, StoredAssignment } from './ledger.ts';
import { receiveReport, reportReceipt } from './receive.ts';

const PATH = /^\/review\/v1\/assignments\/([^/?]{1,384})(?:\/([a-z-]{1,32}))?$/;
const REPORT_BODY: BodyLimit = { maxBytes: MAX_REVIEW_REPORT_BYTES, code: 'request_too_large' };
const NOTICE_BODY: BodyLimit = { maxBytes: 4096, code: 'request_too_large' };
/** As of a RESULT. */
const REPORT_BYTES_PER_MINUTE = 2 * MAX_REVIEW_REPORT_BYTES;
/** Of each address of an assignment. */
const REQUESTS_PER_MINUTE = 10;
/** Of the state, which whoever waits for a verdict asks for. */
const LOOKS_PER_MINUTE = 600;
/** Bodies held in memory at once, of an assignment one; the next one is asked to come again. */
const BODIES: PlaceCaps = { total: 4, perOwner: 1 };
const BODY_WITHIN_MS = 60_000;

/** What an assignment orders to be read, by digest. */
export interface ReviewDocuments {
  /** @throws review_closed when it is no longer served here. */
  artifact(agentHash: string): Buffer;
  rules(snapshotSha256: string): Buffer;
  corpus(corpusSha256: string): Buffer;
}

export interface ReviewRouteDeps {
  ledger: ReviewLedger;
  acceptor: ReviewAcceptor;
  documents: ReviewDocuments;
  /** Milliseconds since the epoch. */
  now: () => number;
}

interface Target {
  assignmentId: string;
  resource: string;
}

function parseTarget(url: string): Target {
  const [, encodedId, resource = ''] = PATH.exec(url) ?? [];
  try {
    if (encodedId !== undefined) return { assignmentId: decodeURIComponent(encodedId), resource };
  } catch {
    // A malformed escape names nothing that exists.
  }
  throw new EvaluatorError('route_unknown', 'request: no such route');
}

/** A guest's reason, if it is one of ours: a foreign one says nothing that can be looked up. */
function reasonOf(code: string): Code {
  return Object.hasOwn(CODES, code) ? (code as Code) : 'review_guest_failed';
}

function verifySameAssignment(named: string, assignmentId: string): void {
  if (named === assignmentId) return;
  throw new EvaluatorError('review_ids_mismatch', 'notice: it names another assignment than its URL');
}

type Handler = (request: IncomingMessage, assignment: StoredAssignment) => Promise<Reply> | Reply;

/** The routes of spec/09 that a review guest uses; every error is an EvaluatorError with its code. */
export function createReviewRoutes({ ledger, acceptor, documents, now }: ReviewRouteDeps) {
  const rate = new RateWindow(REQUESTS_PER_MINUTE, 60_000);
  const looks = new RateWindow(LOOKS_PER_MINUTE, 60_000);
  const volume = new RateWindow(REPORT_BYTES_PER_MINUTE, 60_000);
  const bodies = new Places(BODIES);

  /** An unknown assignment and a wrong token are one answer, in one time. */
  const authorised = (request: IncomingMessage, assignmentId: string): StoredAssignment => {
    const assignment = ledger.assignment(assignmentId);
    if (carriesToken(request, assignment?.tokenSha256 ?? null) && assignment) return assignment;
    throw new EvaluatorError('review_token_invalid', 'request: no such assignment, or not its token');
  };

  const readBody = (request: IncomingMessage, owner: string, limit: BodyLimit): Promise<Buffer> => {
    verifyAnnouncedSize(request, limit);
    return bodies.hold(owner, () => readBodyWithin(request, limit, BODY_WITHIN_MS));
  };

  /** Serves a document of an assignment that still takes a report. */
  const served =
    (contentType: Reply['contentType'], read: (assignment: StoredAssignment) => Buffer): Handler =>
    (_request, assignment) => {
      ledger.verifyTaking(assignment.assignmentId, now());
      return { status: 200, contentType, body: read(assignment) };
    };

  const ordered = (assignment: StoredAssignment) => parseAssignment(assignment.assignmentBytes);

  const getAssignment: Handler = (_request, { assignmentId, assignmentBytes }) => {
    ledger.deploy(assignmentId, now());
    return { status: 200, contentType: 'application/json', body: assignmentBytes };
  };

  const postStarted: Handler = async (request, { assignmentId }) => {
    const notice = parseModelCallStarted(await readBody(request, assignmentId, NOTICE_BODY));
    verifySameAssignment(notice.assignment_id, assignmentId);
    const noted = ledger.announce(assignmentId, notice.planned_request_sha256, now());
    return jsonReply(200, {
      schema_version: 1,
      assignment_id: assignmentId,
      planned_request_sha256: noted.plannedRequestSha256,
      received_at_ms: noted.receivedAtMs,
    });
  };

  const postFailure: Handler = async (request, { assignmentId }) => {
    const failure = parseReviewFailure(await readBody(request, assignmentId, NOTICE_BODY));
    verifySameAssignment(failure.assignment_id, assignmentId);
    ledger.fail(assignmentId, reasonOf(failure.reason_code), now());
    return jsonReply(200, { schema_version: 1, assignment_id: assignmentId });
  };

  const postReport: Handler = async (request, assignment) => {
    const { assignmentId } = assignment;
    const body = await readBody(request, assignmentId, REPORT_BODY);
    volume.take(assignmentId, now(), body.length);
    const { kind, stored } = receiveReport(ledger, assignment, body, now());
    if (kind === 'received') acceptor.enqueue(assignment.sessionId);
    return jsonReply(kind === 'received' ? 202 : 200, reportReceipt(stored));
  };

  const getState: Handler = (_request, { sessionId, assignmentId }) => {
    const session = ledger.session(sessionId);
    return jsonReply(200, {
      assignment_id: assignmentId,
      session_id: sessionId,
      state: session?.state ?? null,
      reason_code: session?.reasonCode ?? null,
    });
  };

  const routes: Readonly<Record<string, readonly ['GET' | 'POST', Handler]>> = {
    '': ['GET', getAssignment],
    artifact: [
      'GET',
      served('application/zip', (stored) => documents.artifact(ordered(stored).artifact.agent_hash)),
    ],
    rules: [
      'GET',
      served('application/json', (stored) => documents.rules(ordered(stored).rules.snapshot_sha256)),
    ],
    corpus: [
      'GET',
      served('application/json', (stored) => documents.corpus(ordered(stored).similarity.corpus_sha256)),
    ],
    state: ['GET', getState],
    'model-call-started': ['POST', postStarted],
    report: ['POST', postReport],
    failure: ['POST', postFailure],
  };

  return async (request: IncomingMessage): Promise<Reply> => {
    const { assignmentId, resource } = parseTarget(request.url ?? '');
    const route = Object.hasOwn(routes, resource) ? routes[resource] : undefined;
    if (!route) throw new EvaluatorError('route_unknown', 'request: no such route');
    const [method, handle] = route;
    if (request.method !== method) {
      throw new EvaluatorError('method_not_allowed', `request: only ${method} here`);
    }
    const assignment = authorised(request, assignmentId);
    (resource === 'state' ? looks : rate).take(`${assignmentId} ${resource}`, now());
    return handle(request, assignment);
  };
}
