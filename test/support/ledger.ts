import type { GrantFacts } from '../../challenge/ledger/grants.ts';
import type { NewRun } from '../../challenge/ledger/ledger.ts';
import type { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';

export const SPKI = sha256Hex('spki');
export const MAX_GRANTS = 2;
export const EXPIRES_AT_MS = 1000;

/** A run of a sealed cache, unless told otherwise; nonces are the run's own. */
export function sealedRun(evalRunId: string, overrides: Partial<NewRun> = {}): NewRun {
  return {
    evalRunId,
    submissionId: `submission of ${evalRunId}`,
    agentHash: 'agent-1',
    planBytes: Buffer.from('{"plan":1}'),
    runTokenSha256: sha256Hex('token'),
    scoreNonce: `score nonce of ${evalRunId}`,
    keyNonce: `key nonce of ${evalRunId}`,
    expiresAtMs: EXPIRES_AT_MS,
    ...overrides,
  };
}

export function grantFacts(grantId: string): GrantFacts {
  return {
    grantId: sha256Hex(grantId).slice(0, 32),
    measurement: {
      mrtd: 'a1'.repeat(48),
      rtmr0: 'b0'.repeat(48),
      rtmr1: 'b1'.repeat(48),
      rtmr2: 'b2'.repeat(48),
      compose_hash: sha256Hex('compose'),
      os_image_hash: sha256Hex('os'),
    },
    appId: 'aa',
    instanceId: 'bb',
    platform: sha256Hex('ppid'),
  };
}

/** One attempt that ends in a grant. */
export function grantTo(ledger: SqliteLedger, evalRunId: string, nowMs: number, spkiDigest = SPKI) {
  const asked = { nonce: `key nonce of ${evalRunId}`, spkiDigest };
  const { attemptId } = ledger.beginAttempt(evalRunId, asked, MAX_GRANTS, nowMs);
  return ledger.grant(attemptId, grantFacts(`${evalRunId}/${attemptId}`), MAX_GRANTS, nowMs);
}
