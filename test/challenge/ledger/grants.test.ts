import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, it } from 'vitest';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { EXPIRES_AT_MS, grantFacts, grantTo, MAX_GRANTS, SPKI, sealedRun } from '../../support/ledger.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf } from '../../support/throws.ts';

let ledger: SqliteLedger;
const ASKED = { nonce: 'key nonce of run', spkiDigest: SPKI };
const begin = (nowMs = 2) => ledger.beginAttempt('run', ASKED, MAX_GRANTS, nowMs);

beforeEach(() => {
  ledger = new SqliteLedger(':memory:');
  ledger.prepare(sealedRun('run'), 1);
});

describe('attempts', () => {
  it('are counted from 1 and kept with what came of them', () => {
    ledger.endAttempt(begin().attemptId, 'denied', 'measurement_not_allowed');
    ledger.endAttempt(begin().attemptId, 'outage', 'collateral_expired');
    grantTo(ledger, 'run', 3);
    expect(
      ledger.attempts('run').map(({ attempt, outcome, reasonCode }) => [attempt, outcome, reasonCode]),
    ).toEqual([
      [1, 'denied', 'measurement_not_allowed'],
      [2, 'outage', 'collateral_expired'],
      [3, 'granted', null],
    ]);
  });

  it('that were denied or granted use up max_grants, and no others do', () => {
    for (const outcome of ['outage', 'refused', 'refused', 'outage'] as const) {
      ledger.endAttempt(begin().attemptId, outcome, 'quote_signature_invalid');
    }
    begin();
    ledger.interruptAttempts();
    ledger.endAttempt(begin().attemptId, 'denied', 'td_debug');
    grantTo(ledger, 'run', 3);
    expect(codeOf(() => begin())).toBe('grants_exhausted');
  });

  it('end once', () => {
    const { attemptId } = begin();
    ledger.endAttempt(attemptId, 'outage', 'collateral_expired');
    expect(codeOf(() => ledger.endAttempt(attemptId, 'denied', 'td_debug'))).toBe(
      'ledger_transition_refused',
    );
    expect(codeOf(() => ledger.grant(attemptId, grantFacts('late'), MAX_GRANTS, 3))).toBe(
      'ledger_transition_refused',
    );
    expect(ledger.grants('run')).toEqual([]);
    expect(ledger.run('run')?.state).toBe('prepared');
  });

  it('begun at once get no more grants than there are, whoever is verified first', () => {
    const begun = [begin(), begin(), begin()];
    ledger.grant(begun[2]?.attemptId ?? 0, grantFacts('c'), MAX_GRANTS, 3);
    ledger.grant(begun[0]?.attemptId ?? 0, grantFacts('a'), MAX_GRANTS, 3);
    expect(codeOf(() => ledger.grant(begun[1]?.attemptId ?? 0, grantFacts('b'), MAX_GRANTS, 3))).toBe(
      'grants_exhausted',
    );
    // The newest is the one committed last, not the one that asked last.
    expect(ledger.grants('run').map(({ grantId }) => grantId)).toEqual(
      ['c', 'a'].map((name) => grantFacts(name).grantId),
    );
  });

  it('are not begun for a run that has started, ended or expired', () => {
    expect(codeOf(() => begin(EXPIRES_AT_MS))).toBe('run_expired');
    const { grantId } = grantTo(ledger, 'run', 3);
    ledger.start('run', grantId, SPKI, 4);
    expect(codeOf(() => begin())).toBe('run_started');
    ledger.receive('run', Buffer.from('result'), 5);
    expect(codeOf(() => begin())).toBe('run_closed');
  });

  it('that were verified while the run started get nothing any more', () => {
    const { attemptId } = begin();
    const { grantId } = grantTo(ledger, 'run', 3);
    ledger.start('run', grantId, SPKI, 4);
    expect(codeOf(() => ledger.grant(attemptId, grantFacts('late'), MAX_GRANTS, 5))).toBe('run_started');
    expect(ledger.grants('run')).toHaveLength(1);
  });
});

describe('a grant', () => {
  it('is kept whole over a restart', () => {
    const path = join(scratchFolder(), 'ledger.sqlite');
    const first = new SqliteLedger(path);
    first.prepare(sealedRun('run'), 1);
    const granted = grantTo(first, 'run', 3);
    first.close();
    const second = new SqliteLedger(path);
    expect(second.grants('run')).toEqual([granted]);
    expect(granted).toEqual({
      ...grantFacts('run/1'),
      ...ASKED,
      evalRunId: 'run',
      attemptId: 1,
      grantedAtMs: 3,
    });
    second.close();
  });

  it('cannot be rewritten, and no attempt gets two', () => {
    const path = join(scratchFolder(), 'ledger.sqlite');
    const kept = new SqliteLedger(path);
    kept.prepare(sealedRun('run'), 1);
    grantTo(kept, 'run', 3);
    const raw = new DatabaseSync(path);
    expect(() => raw.exec("UPDATE grants SET app_id = 'cc'")).toThrow(/append-only/);
    expect(() => raw.exec('DELETE FROM grants')).toThrow(/append-only/);
    expect(() =>
      raw.exec(
        "INSERT INTO grants SELECT 'other', attempt_id, measurement, app_id, instance_id, platform, 9 FROM grants",
      ),
    ).toThrow(/UNIQUE/);
    raw.close();
    kept.close();
  });
});

describe('a started notice', () => {
  it('is kept once, and the same one gives the same receipt for ever', () => {
    const { grantId } = grantTo(ledger, 'run', 3);
    const receipt = ledger.start('run', grantId, SPKI, 4);
    expect(ledger.start('run', grantId, SPKI, 5)).toEqual(receipt);
    ledger.receive('run', Buffer.from('result'), 6);
    expect(ledger.start('run', grantId, SPKI, EXPIRES_AT_MS + 1)).toEqual(receipt);
    expect(ledger.started('run')).toEqual(receipt);
    expect(ledger.history('run').map(({ to }) => to)).toEqual(['prepared', 'granted', 'started', 'received']);
  });

  it('counts under the newest grant alone, from the certificate it was given to', () => {
    const first = grantTo(ledger, 'run', 3, 'one');
    const second = grantTo(ledger, 'run', 3, 'two');
    expect(codeOf(() => ledger.start('run', first.grantId, 'one', 4))).toBe('grant_superseded');
    expect(codeOf(() => ledger.start('run', second.grantId, 'one', 4))).toBe('grant_certificate_mismatch');
    expect(codeOf(() => ledger.start('run', 'ab'.repeat(16), 'two', 4))).toBe('grant_unknown');
    expect(codeOf(() => ledger.start('run', second.grantId, 'two', EXPIRES_AT_MS))).toBe('run_expired');
    expect(ledger.run('run')?.state).toBe('granted');
    ledger.start('run', second.grantId, 'two', 4);
    expect(ledger.run('run')?.state).toBe('started');
  });

  it('of another run is unknown', () => {
    const { grantId } = grantTo(ledger, 'run', 3);
    ledger.prepare(sealedRun('other', { agentHash: 'agent-2' }), 1);
    grantTo(ledger, 'other', 3);
    expect(codeOf(() => ledger.start('other', grantId, SPKI, 4))).toBe('grant_unknown');
  });

  it('comes too late once a RESULT was received', () => {
    const { grantId } = grantTo(ledger, 'run', 3);
    ledger.receive('run', Buffer.from('result'), 4);
    expect(codeOf(() => ledger.start('run', grantId, SPKI, 5))).toBe('run_closed');
  });
});

describe('closing and opening', () => {
  it('tells a run that had started from one that had not', () => {
    ledger.prepare(sealedRun('granted', { agentHash: 'agent-2' }), 1);
    ledger.prepare(sealedRun('started', { agentHash: 'agent-3' }), 1);
    grantTo(ledger, 'granted', 2);
    ledger.start('started', grantTo(ledger, 'started', 2).grantId, SPKI, 3);
    ledger.closeOverdue(EXPIRES_AT_MS - 1, 10);
    expect(ledger.runsIn(['prepared', 'granted', 'started'])).toHaveLength(3);
    ledger.closeOverdue(EXPIRES_AT_MS, 10);
    expect(ledger.run('run')).toMatchObject({ state: 'expired', reasonCode: 'run_expired' });
    expect(ledger.run('granted')).toMatchObject({ state: 'expired', reasonCode: 'run_expired' });
    expect(ledger.run('started')).toMatchObject({ state: 'no_result', reasonCode: 'run_expired' });
  });

  it('lets an agent have one run that counts, until an operator re-opens it with a reason', () => {
    const again = (id: string) => ledger.prepare(sealedRun(id), 5);
    expect(codeOf(() => again('second'))).toBe('agent_run_open');
    ledger.start('run', grantTo(ledger, 'run', 2).grantId, SPKI, 3);
    expect(codeOf(() => again('second'))).toBe('agent_run_open');
    ledger.closeOverdue(EXPIRES_AT_MS, 10);
    expect(codeOf(() => again('second'))).toBe('agent_no_result');
    for (const reason of ['', '   ', 'line\nbreak', 'x'.repeat(501)]) {
      expect(codeOf(() => ledger.reopen('run', reason, 6))).toBe('reopen_reason_invalid');
    }
    ledger.reopen('run', 'the host lost power', 6);
    again('second');
    expect(ledger.history('run').slice(-2)).toEqual([
      { from: 'started', to: 'no_result', reasonCode: 'run_expired', note: null, atMs: EXPIRES_AT_MS },
      { from: 'no_result', to: 'reopened', reasonCode: null, note: 'the host lost power', atMs: 6 },
    ]);
    expect(ledger.run('second')?.state).toBe('prepared');
  });

  it('takes a rejected run that had started for one without a result: a forgery buys no second try', () => {
    ledger.start('run', grantTo(ledger, 'run', 2).grantId, SPKI, 3);
    ledger.receive('run', Buffer.from('forged'), 4);
    ledger.reject('run', 'quote_signature_invalid', 5);
    expect(codeOf(() => ledger.prepare(sealedRun('second'), 6))).toBe('agent_no_result');
    ledger.reopen('run', 'the verifier was wrong', 7);
    ledger.prepare(sealedRun('second'), 8);
  });

  it('prepares no second run of a scored agent, and any number after runs that never started', () => {
    ledger.closeOverdue(EXPIRES_AT_MS, 10);
    ledger.prepare(sealedRun('second', { expiresAtMs: 5000 }), 1001);
    ledger.receive('second', Buffer.from('forged'), 1002);
    ledger.reject('second', 'grant_missing', 1003);
    ledger.prepare(sealedRun('third', { expiresAtMs: 5000 }), 1004);
    ledger.start('third', grantTo(ledger, 'third', 1005).grantId, SPKI, 1006);
    ledger.receive('third', Buffer.from('result'), 1007);
    ledger.accept('third', '3ff0000000000000', 1008);
    expect(codeOf(() => ledger.prepare(sealedRun('fourth'), 1009))).toBe('agent_already_scored');
    expect(codeOf(() => ledger.reopen('third', 'a better day', 1010))).toBe('ledger_transition_refused');
  });
});
