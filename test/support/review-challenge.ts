import { join } from 'node:path';
import type { ReviewPolicy } from '../../challenge/review/accept.ts';
import { acceptedReviews } from '../../challenge/review/gate.ts';
import { reviewPaths } from '../../challenge/review/paths.ts';
import { createReviewService, type ReviewService } from '../../challenge/review/serve.ts';
import { createSession, prepareReview } from '../../challenge/review/sessions.ts';
import { SqliteReviewLedger } from '../../challenge/review/sqlite.ts';
import type { ReviewStore } from '../../challenge/reviews.ts';
import { SERVER_LIMITS, startServer } from '../../challenge/server.ts';
import { issueServerIdentity, type ServerIdentity } from '../../challenge/tls.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { type Assignment, parseAssignment } from '../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { Platform } from '../../simulator/platform.ts';
import { call, type HttpReply } from './challenge-process.ts';
import { scratchFolder } from './scratch.ts';
import { allowlistOf, NOW_MS } from './valid-result.ts';
import {
  POLICY,
  type ReviewContent,
  reviewAppOf,
  reviewFor,
  reviewKeys,
  reviewPlatform,
} from './valid-review.ts';

let identity: Promise<ServerIdentity> | undefined;
export const AGENT = Buffer.from('the agent');

/** One try of a session, as its guest's owner holds it. */
export interface Try {
  assignment: Assignment;
  token: string;
  /** The report of an honest guest. */
  report(content?: Partial<ReviewContent>): Buffer;
  get(resource: 'assignment' | 'artifact' | 'rules' | 'corpus' | 'state'): Promise<HttpReply>;
  post(resource: 'modelCallStarted' | 'report' | 'failure', body: Buffer, token?: string): Promise<HttpReply>;
  /** Fetches the assignment and announces the request of `report`. */
  announce(content?: Partial<ReviewContent>): Promise<void>;
  /** Does all that an honest guest does, and waits for the judgement. */
  deliver(content?: Partial<ReviewContent>): Promise<string>;
}

export interface ReviewChallenge extends ReviewService {
  platform: Platform;
  path: string;
  ledger: SqliteReviewLedger;
  clock: { nowMs: number };
  log: Record<string, unknown>[];
  gate: ReviewStore;
  create(): string;
  prepare(sessionId?: string): Try;
  close(): Promise<void>;
}

/** A challenge in this process that reviews one agent: a ledger in a file and a clock that a test moves. */
export async function reviewChallenge(policy: Partial<ReviewPolicy> = {}): Promise<ReviewChallenge> {
  identity ??= issueServerIdentity('127.0.0.1', Date.now());
  const { caPem } = await identity;
  const platform = await reviewPlatform();
  const keys = reviewKeys();
  const path = join(scratchFolder(), 'ledger.sqlite');
  const ledger = new SqliteReviewLedger(path);
  const clock = { nowMs: NOW_MS };
  const log: Record<string, unknown>[] = [];
  const trusted: ReviewPolicy = {
    root: keys.root,
    allowlist: allowlistOf(platform),
    rootDer: platform.rootDer,
    acceptedTcb: new Set(['UpToDate']),
    collateral: async () => platform.collateral,
    ...policy,
  };
  const only = (known: string, bytes: Buffer) => (sha256: string) => {
    if (sha256 === known) return bytes;
    throw new EvaluatorError('review_closed', 'not served here');
  };
  const service = createReviewService({
    ledger,
    policy: trusted,
    documents: {
      artifact: only(sha256Hex(AGENT), AGENT),
      rules: only(sha256Hex('rules'), Buffer.from('{"rules":1}')),
      corpus: only(sha256Hex('corpus'), Buffer.from('{"corpus":1}')),
    },
    now: () => clock.nowMs,
    log: (event) => log.push(event),
  });
  const server = await startServer({
    route: service.route,
    identity: await identity,
    host: '127.0.0.1',
    port: 0,
    limits: SERVER_LIMITS,
    onDefect: (error) => log.push({ event: 'defect', detail: String(error) }),
  });
  const endpoint = { baseUrl: `https://127.0.0.1:${server.port}`, caPem };
  const create = (): string => {
    const agentHash = sha256Hex(AGENT);
    const submission = { submissionId: 'submission-1', agentHash, receivedAtMs: clock.nowMs };
    return createSession(ledger, submission, clock.nowMs);
  };
  const prepare = (sessionId = create()): Try => {
    const { assignment: stored, token } = prepareReview(
      sessionId,
      {
        ledger,
        issuer: keys,
        endpoint,
        zipSizeBytes: AGENT.length,
        terms: {
          rules: { snapshotSha256: sha256Hex('rules'), revisionId: 'rules-1' },
          corpusSha256: sha256Hex('corpus'),
          policy: POLICY,
          reviewApp: reviewAppOf(platform),
        },
      },
      clock.nowMs,
    );
    const assignment = parseAssignment(stored.assignmentBytes);
    const paths = reviewPaths(stored.assignmentId);
    const ask = (method: 'GET' | 'POST', resource: keyof typeof paths, body?: Buffer, bearer = token) =>
      call(`${endpoint.baseUrl}${paths[resource]}`, {
        method,
        token: bearer,
        ca: caPem,
        ...(body ? { body } : {}),
      });
    const report: Try['report'] = (content) =>
      encodeCanonical(
        reviewFor(platform, assignment, {
          startedAtMs: clock.nowMs,
          finishedAtMs: clock.nowMs,
          ...content,
        }),
      );
    const one: Try = {
      assignment,
      token,
      report,
      get: (resource) => ask('GET', resource),
      post: (resource, body, bearer) => ask('POST', resource, body, bearer),
      announce: async (content) => {
        await one.get('assignment');
        const { model } = reviewFor(platform, assignment, content).report.review_core;
        const notice = {
          assignment_id: assignment.assignment_id,
          planned_request_sha256: model.request_sha256,
        };
        await one.post('modelCallStarted', encodeCanonical(notice));
      },
      deliver: async (content) => {
        await one.announce(content);
        await one.post('report', report(content));
        await service.acceptor.idle();
        return String((await one.get('state')).json.state);
      },
    };
    return one;
  };
  return {
    ...service,
    platform,
    path,
    ledger,
    clock,
    log,
    gate: acceptedReviews(ledger, trusted),
    create,
    prepare,
    close: async () => {
      await server.close();
      await service.acceptor.idle();
      ledger.close();
    },
  };
}
