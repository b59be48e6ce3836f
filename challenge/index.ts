export { type AcceptancePolicy, type CollateralSource, type Judgement, judge } from './accept.ts';
export { clampedMcc } from './behavioural-score.ts';
export {
  type Challenge,
  type ChallengeOptions,
  type KeyReleaseOptions,
  startChallenge,
} from './challenge.ts';
export { type ChallengeConfig, configSchema, parseConfig } from './config.ts';
export { type Eligibility, eligibilityOf } from './eligible.ts';
export { type IssuedPlan, type Issuer, issuePlan, type PlanOrder, planRootOf } from './issue-plan.ts';
export { type KeyReleaseDeps, releaseKeys, type SealedCache } from './key-release/exchange.ts';
export { KEY_RELEASE_LIMITS, startKeyReleaseServer } from './key-release/server.ts';
export { type LabelStore, NO_LABELS, readLabels } from './labels.ts';
export type { Attempt, Grant, GrantLedger, StoredStart } from './ledger/grants.ts';
export type { HistoryEntry, Ledger, NewRun, Run, StoredReceipt } from './ledger/ledger.ts';
export { type RunEvent, type RunState, TRANSITIONS } from './ledger/machine.ts';
export { SqliteLedger } from './ledger/sqlite.ts';
export { standingScore } from './ledger/standing.ts';
export { type LocalChallenge, startLocalChallenge } from './local.ts';
export { loadIssuer } from './local-state.ts';
export { type PreparedRun, prepareRun, type RunRequest } from './prepare.ts';
export { receiptDocument, receiveResult } from './receive.ts';
export { judgeReview, type ReviewPolicy } from './review/accept.ts';
export { parseReviewConfig, type ReviewConfig } from './review/config.ts';
export { encodeReviewFile, fileReview, parseReviewFile, revokeReviewFile } from './review/file.ts';
export { acceptedReviews, REVIEW_FRESH_MS } from './review/gate.ts';
export type { ReviewLedger } from './review/ledger.ts';
export { createReviewService, type ReviewService } from './review/serve.ts';
export { createSession, prepareReview } from './review/sessions.ts';
export { SqliteReviewLedger } from './review/sqlite.ts';
export { REVIEW_CHECKS, type ReviewInput, type VerifiedReview, verifyReview } from './review/verify.ts';
export { NO_REVIEWS, type ReviewStore } from './reviews.ts';
export { loadKeys } from './secrets.ts';
export { selectionSeed, selectTasks } from './select.ts';
export { issueServerIdentity, type ServerIdentity } from './tls.ts';
export type { CheckReport } from './verify/checklist.ts';
export { type Collateral, parseCollateral } from './verify/collateral.ts';
export { EVIDENCE_CHECKS, type EvidenceInput, type TrustPolicy, verifyEvidence } from './verify/evidence.ts';
export { platformOf } from './verify/ppid.ts';
export { RESULT_CHECKS, type ResultInput, type ResultVerdict, verifyResult } from './verify/result.ts';
export { parseRoot } from './verify/root.ts';
