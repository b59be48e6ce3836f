import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteReviewLedger } from '../../../challenge/review/sqlite.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { newSession, prepareNext } from '../../support/review-ledger.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf } from '../../support/throws.ts';

let path: string;
let ledger: SqliteReviewLedger;
beforeEach(() => {
  path = join(scratchFolder(), 'ledger.sqlite');
  ledger = new SqliteReviewLedger(path);
  ledger.create(newSession('one'), 1);
});
afterEach(() => {
  ledger.close();
});

function raw(sql: string): void {
  const db = new DatabaseSync(path);
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}
function toReceived(): string {
  const id = prepareNext(ledger, 'one', 2);
  ledger.deploy(id, 3);
  ledger.announce(id, sha256Hex('request'), 4);
  ledger.receive(id, Buffer.from('report'), 5);
  return id;
}
const allow = { verdict: 'allow', reviewDigest: sha256Hex('core') } as const;

describe('the ledger of reviews', () => {
  it('keeps everything over a restart', () => {
    toReceived();
    ledger.conclude('one', allow, 6);
    const before = [ledger.file('one'), ledger.history('one'), ledger.sessionOf(allow.reviewDigest)];
    ledger.close();
    ledger = new SqliteReviewLedger(path);
    expect([ledger.file('one'), ledger.history('one'), ledger.sessionOf(allow.reviewDigest)]).toEqual(before);
    expect(ledger.session('one')).toEqual({ ...newSession('one'), state: 'allowed', reasonCode: null });
  });

  it('consumes a nonce once, and writes nothing when it was consumed', () => {
    toReceived();
    ledger.create(newSession('other', { agentHash: sha256Hex('other') }), 1);
    raw("INSERT INTO consumed_review_nonces VALUES ('nonce of one/1', 'other')");
    expect(codeOf(() => ledger.conclude('one', allow, 6))).toBe('review_nonce_consumed');
    expect(ledger.session('one')?.state).toBe('received');
    expect(ledger.sessionOf(allow.reviewDigest)).toBeNull();
    expect(ledger.history('one').at(-1)?.to).toBe('received');
  });

  it('has a history and announcements that cannot be rewritten', () => {
    toReceived();
    for (const table of ['review_history', 'review_announcements']) {
      expect(() => raw(`DELETE FROM ${table}`)).toThrow(/append-only/);
      expect(() => raw(`UPDATE ${table} SET rowid = rowid + 100`)).toThrow(/append-only/);
    }
  });

  describe('of an agent whose expired session is tried again after another was made', () => {
    const conclude = (sessionId: string, verdict: 'allow' | 'reject', nowMs: number) => {
      const id = prepareNext(ledger, sessionId, nowMs);
      ledger.deploy(id, nowMs);
      ledger.receive(id, Buffer.from(`report of ${sessionId}`), nowMs);
      ledger.conclude(sessionId, { verdict, reviewDigest: sha256Hex(`core of ${sessionId}`) }, nowMs);
    };
    beforeEach(() => {
      prepareNext(ledger, 'one', 2);
      ledger.closeOverdue(2000, 1);
      ledger.create(newSession('two'), 2001);
    });

    it('has one open session, and none after a verdict that stands', () => {
      expect(codeOf(() => prepareNext(ledger, 'one', 2002))).toBe('review_session_open');
      conclude('two', 'reject', 2003);
      expect(codeOf(() => prepareNext(ledger, 'one', 2004))).toBe('review_needs_operator');
      ledger.reopen('two', 'the rules were wrong', 2005);
      expect(prepareNext(ledger, 'one', 2006)).toBe('one/2');
    });

    it('counts the verdict that came last', () => {
      conclude('two', 'allow', 2003);
      expect(ledger.newestConcluded(sha256Hex('agent'))?.session.sessionId).toBe('two');
      conclude('one', 'reject', 2004);
      expect(ledger.newestConcluded(sha256Hex('agent'))?.session).toMatchObject({
        sessionId: 'one',
        state: 'rejected',
      });
    });
  });

  it('needs a reason of an operator who decides', () => {
    toReceived();
    ledger.conclude('one', { ...allow, verdict: 'reject' }, 6);
    for (const reason of ['', '  ', 'line\nbreak', 'x'.repeat(501)]) {
      expect(codeOf(() => ledger.reopen('one', reason, 7))).toBe('reopen_reason_invalid');
    }
    ledger.reopen('one', 'the rule was wrong', 7);
    expect(ledger.history('one').at(-1)).toMatchObject({ to: 'reopened', note: 'the rule was wrong' });
    ledger.create(newSession('two'), 8);
  });

  it('knows no session and no assignment that it did not make', () => {
    expect(codeOf(() => prepareNext(ledger, 'none', 2))).toBe('review_session_unknown');
    expect(codeOf(() => ledger.deploy('none', 2))).toBe('review_session_unknown');
    expect(ledger.file('none')).toBeNull();
    expect(ledger.newestConcluded(sha256Hex('agent'))).toBeNull();
  });
});
