import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseConfig } from '../../../challenge/config.ts';
import { NO_LABELS } from '../../../challenge/labels.ts';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { prepareRun } from '../../../challenge/prepare.ts';
import { REVIEW_FRESH_MS } from '../../../challenge/review/gate.ts';
import { NO_REVIEWS } from '../../../challenge/reviews.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { parseMechanism } from '../../../guest/wire/mechanism.ts';
import { challengeConfig } from '../../support/challenge-process.ts';
import { AGENT, type ReviewChallenge, reviewChallenge } from '../../support/review-challenge.ts';
import { rejectionCode } from '../../support/throws.ts';
import { MECHANISM_BYTES, NOW_MS } from '../../support/valid-result.ts';
import { reviewKeys } from '../../support/valid-review.ts';

const OTHER_AGENT = Buffer.from('another agent');
let challenge: ReviewChallenge;
let runs: SqliteLedger;
let prepared: ReturnType<typeof preparing>;
beforeEach(async () => {
  challenge = await reviewChallenge();
  runs = new SqliteLedger(':memory:');
  prepared = preparing();
});
afterEach(async () => {
  runs.close();
  await challenge.close();
});

/** The challenge's own prepare of an eval run, ranked or not. */
function preparing() {
  const issuer = { ...reviewKeys(), epochSecret: Buffer.alloc(32, 1) };
  const config = parseConfig(Buffer.from(JSON.stringify(challengeConfig(challenge.platform))));
  const { track, policy, r, n_concurrent, eval_app, cache } = config;
  return (agentZip: Buffer, nowMs: number, reviews = challenge.gate) =>
    prepareRun(
      {
        submissionId: 'submission-1',
        hotkey: 'hotkey-1',
        agentZip,
        agentEnv: [],
        agentRuntimeImage: null,
        cache,
        n: 2,
        terms: { ranked: false, track, policy, r, n_concurrent, eval_app },
        mechanism: parseMechanism(MECHANISM_BYTES),
        ttlMs: 3_600_000,
        admission: 'reviewed',
      },
      {
        baseUrl: 'https://127.0.0.1:1',
        keyReleaseUrl: null,
        caPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      },
      { issuer, ledger: runs, reviews, labels: NO_LABELS, keepToken: () => undefined },
      nowMs,
    );
}
const refusal = (...args: Parameters<typeof prepared>) => rejectionCode(prepared(...args));
function meddle(sql: string, ...values: (string | Buffer)[]): void {
  const raw = new DatabaseSync(challenge.path);
  raw.exec('PRAGMA foreign_keys = OFF');
  raw.prepare(sql).run(...values);
  raw.close();
}

it('an eval is prepared under a fresh allow of its agent, whose digest its plan carries', async () => {
  expect(await refusal(AGENT, NOW_MS, NO_REVIEWS)).toBe('review_missing');
  await challenge.prepare().deliver();
  const { plan } = await prepared(AGENT, NOW_MS + REVIEW_FRESH_MS);
  const digest = plan.authorizing_review_digest ?? '';
  expect(challenge.ledger.sessionOf(digest)?.state).toBe('allowed');
});

it('and under nothing else: each with a code of its own, and no run in the ledger', async () => {
  const codes: Record<string, string> = {};
  await challenge.prepare().deliver();
  codes['a day and a millisecond old'] = await refusal(AGENT, NOW_MS + REVIEW_FRESH_MS + 1);
  codes['dated ahead'] = await refusal(AGENT, NOW_MS - 1);
  codes['of no agent known here'] = await refusal(OTHER_AGENT, NOW_MS);
  meddle('UPDATE review_sessions SET agent_hash = ?', sha256Hex(OTHER_AGENT));
  codes['of another agent'] = await refusal(OTHER_AGENT, NOW_MS);
  meddle('UPDATE review_sessions SET agent_hash = ?', sha256Hex(AGENT));
  const kept = challenge.ledger.newestConcluded(sha256Hex(AGENT));
  const bytes = kept?.report?.reportBytes ?? Buffer.alloc(0);
  meddle(
    'UPDATE review_reports SET report = ?',
    Buffer.from(bytes.toString().replace('"files":2', '"files":3')),
  );
  codes['of changed bytes'] = await refusal(AGENT, NOW_MS);
  meddle('UPDATE review_reports SET report = ?', bytes);
  challenge.ledger.revoke(kept?.session.sessionId ?? '', 'it reads the tests', NOW_MS);
  codes['taken back'] = await refusal(AGENT, NOW_MS);
  meddle("UPDATE review_sessions SET state = 'allowed'");
  meddle('DELETE FROM review_reports');
  codes['a flag without bytes'] = await refusal(AGENT, NOW_MS);
  expect(codes).toEqual({
    'a day and a millisecond old': 'review_stale',
    'dated ahead': 'review_from_future',
    'of no agent known here': 'review_missing',
    'of another agent': 'review_agent_mismatch',
    'of changed bytes': 'review_bytes_changed',
    'taken back': 'review_revoked',
    'a flag without bytes': 'review_bytes_missing',
  });
  expect(new Set(Object.values(codes)).size).toBe(Object.keys(codes).length);
  expect(runs.runsIn(['prepared'])).toEqual([]);
});
