import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseAssignment, REVIEW_WINDOW_MS } from '../../guest/wire/assignment.ts';
import { decodeCanonical, encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import {
  MAX_RULES_BUNDLE_BYTES,
  parseCorpus,
  parseRulesBundle,
  rulesBundleSchema,
} from '../../guest/wire/review-inputs.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { planRootOf } from '../issue-plan.ts';
import { loadIdentity, loadIssuer, readInput } from '../local-state.ts';
import { writeSecret } from '../secrets.ts';
import { SERVER_LIMITS, startServer } from '../server.ts';
import { startUpkeep } from '../upkeep.ts';
import { parseRoot } from '../verify/root.ts';
import { bytesOf, type ReviewPolicy } from './accept.ts';
import type { ReviewConfig } from './config.ts';
import { encodeReviewFile } from './file.ts';
import type { ReviewTerms } from './issue-assignment.ts';
import type { ReviewLedger, Session } from './ledger.ts';
import { OPEN, VERDICTS } from './machine.ts';
import { beginRevocations, revocationsBeside } from './revocations.ts';
import { createReviewService, type ReviewOptions } from './serve.ts';
import { sessionToken } from './session-token.ts';
import { createSession, prepareReview } from './sessions.ts';

const REVIEW_FILE = 'review.json';

/** The effects that a local challenge is given. */
export type LocalReviewDeps = Pick<ReviewOptions, 'now' | 'log'> &
  Pick<ReviewPolicy, 'collateral'> & { openLedger: (path: string) => ReviewLedger };

export interface LocalReview {
  baseUrl: string;
  assignmentId: string;
  /** Its guest's owner is given it. */
  token: string;
  close(): Promise<void>;
}

interface Inputs {
  agentZip: Buffer;
  rules: Buffer;
  corpus: Buffer;
  terms: ReviewTerms;
}

/** Reads what is reviewed and by what, as a guest will. @throws usage, rules_*, corpus_*, json_*, schema_invalid. */
function readInputs(config: ReviewConfig): Inputs {
  const agentZip = readInput(config.agent_zip_path, 'agent_zip_path');
  const rules = readInput(config.rules_path, 'rules_path');
  const corpus = readInput(config.corpus_path, 'corpus_path');
  const bundle = decodeCanonical(rules, MAX_RULES_BUNDLE_BYTES);
  const { revision_id: revisionId } = parseSchema(rulesBundleSchema, bundle, 'rules');
  const snapshotSha256 = sha256Hex(rules);
  parseRulesBundle(rules, { snapshot_sha256: snapshotSha256, revision_id: revisionId });
  const corpusSha256 = sha256Hex(corpus);
  parseCorpus(corpus, corpusSha256);
  const { policy, review_app: reviewApp } = config;
  const terms = { rules: { snapshotSha256, revisionId }, corpusSha256, policy, reviewApp };
  return { agentZip, rules, corpus, terms };
}

/** Serves these bytes under their digest, and nothing else. */
function only(bytes: Buffer): (sha256: string) => Buffer {
  const known = sha256Hex(bytes);
  return (sha256) => {
    if (sha256 === known) return bytes;
    throw new EvaluatorError('review_closed', 'review: what it is made of is no longer served here');
  };
}

/** The session that an earlier process left undecided. */
function openSession(ledger: ReviewLedger, agentHash: string): Session | undefined {
  return ledger.sessionsIn(OPEN).find((session) => session.agentHash === agentHash);
}

/** A resumed assignment names its port; a new one takes the configuration's. */
function portOf(config: ReviewConfig, ledger: ReviewLedger, resumed: Session | undefined): number {
  const assignment = resumed && ledger.newestAssignment(resumed.sessionId);
  if (!assignment) return config.port;
  return Number(new URL(parseAssignment(assignment.assignmentBytes).api_base_url).port);
}

function writeTrust(config: ReviewConfig, root: ReviewPolicy['root']): void {
  mkdirSync(config.out_dir, { recursive: true });
  const files = {
    'review-root.json': encodeCanonical({ public_key: root.publicKey, challenge_id: root.challengeId }),
    'allowlist.json': encodeCanonical(config.allowlist),
    'root.pem': config.tdx_root_pem,
    'collateral.json': JSON.stringify(config.collateral),
  };
  for (const [name, data] of Object.entries(files)) writeFileSync(join(config.out_dir, name), data);
  beginRevocations(revocationsBeside(join(config.out_dir, REVIEW_FILE)));
}

/** Leaves what a session brought: the exact report, and the review file once its evidence held. */
function writeOutcome(config: ReviewConfig, ledger: ReviewLedger, sessionId: string): void {
  const file = ledger.file(sessionId);
  if (!file?.report || !file.assignment) return;
  writeFileSync(join(config.out_dir, 'report.json'), file.report.reportBytes);
  // A code instead of a verdict: its evidence was never held to be good.
  if (!VERDICTS.some((state) => state === file.session.state) || file.session.reasonCode !== null) return;
  writeFileSync(join(config.out_dir, REVIEW_FILE), encodeReviewFile(bytesOf(file)));
}

/**
 * Starts a challenge that reviews one agent on this machine: keys and ledger in `state_dir`, one session with
 * an assignment (or the undecided one of an earlier process resumed), trust and outcome in `out_dir`.
 * @throws usage naming the field, rules_*, corpus_*, review_session_open, review_needs_operator, ...
 */
export async function startLocalReview(config: ReviewConfig, deps: LocalReviewDeps): Promise<LocalReview> {
  const { now, log } = deps;
  const { agentZip, rules, corpus, terms } = readInputs(config);
  const rootDer = parseRoot(config.tdx_root_pem);
  const issuer = await loadIssuer(config.state_dir);
  const ledger = deps.openLedger(join(config.state_dir, 'ledger.sqlite'));
  const agentHash = sha256Hex(agentZip);
  const root = planRootOf(issuer);
  const service = createReviewService({
    ledger,
    policy: {
      root,
      allowlist: config.allowlist,
      rootDer,
      acceptedTcb: new Set(config.accepted_tcb),
      collateral: deps.collateral,
    },
    documents: { artifact: only(agentZip), rules: only(rules), corpus: only(corpus) },
    now,
    log: (event) => {
      if (event.event === 'review_judged') writeOutcome(config, ledger, String(event.session_id));
      log(event);
    },
  });
  writeTrust(config, root);
  // Judged by an earlier process that was killed before it wrote what came of it.
  const judged = ledger.newestConcluded(agentHash);
  if (judged) writeOutcome(config, ledger, judged.session.sessionId);
  service.upkeep();
  const resumed = openSession(ledger, agentHash);
  // A resumed guest believes the CA of its assignment, and no newer one.
  const untilMs = now() + (resumed ? 0 : REVIEW_WINDOW_MS);
  const identity = await loadIdentity(config, now(), untilMs);
  const server = await startServer({
    route: service.route,
    identity,
    host: config.host,
    port: portOf(config, ledger, resumed),
    limits: SERVER_LIMITS,
    onDefect: (error) => log({ event: 'defect', detail: error instanceof Error ? error.message : 'unknown' }),
  });
  const endUpkeep = startUpkeep(service.upkeep, log);
  const close = async (): Promise<void> => {
    endUpkeep();
    await server.close();
    await service.acceptor.idle();
    ledger.close();
  };
  try {
    const baseUrl = `https://${config.host.includes(':') ? `[${config.host}]` : config.host}:${server.port}`;
    const submission = { submissionId: `local-${agentHash.slice(0, 16)}`, agentHash, receivedAtMs: now() };
    const endpoint = { baseUrl, caPem: identity.caPem };
    const issue = () =>
      prepareReview(
        resumed?.sessionId ?? createSession(ledger, submission, now()),
        { ledger, issuer, terms, endpoint, zipSizeBytes: agentZip.length },
        now(),
      ).assignment;
    const assignment = (resumed && ledger.newestAssignment(resumed.sessionId)) ?? issue();
    const { assignmentId } = assignment;
    writeFileSync(join(config.out_dir, 'assignment.json'), assignment.assignmentBytes);
    const token = sessionToken(issuer.tokenSecret, assignmentId);
    writeSecret(join(config.state_dir, `session-token-${assignmentId}`), token);
    return { baseUrl, assignmentId, token, close };
  } catch (error) {
    await close();
    throw error;
  }
}
