import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import type { NewRun } from '../../../challenge/ledger/ledger.ts';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf } from '../../support/throws.ts';

const RESULT = Buffer.from('{"result":1}');
const ONE = '3ff0000000000000';

function newRun(overrides: Partial<NewRun> = {}): NewRun {
  return {
    evalRunId: 'run-1',
    submissionId: 'submission-1',
    agentHash: 'agent-1',
    planBytes: Buffer.from('{"plan":1}'),
    runTokenSha256: sha256Hex('token'),
    scoreNonce: 'nonce-1',
    keyNonce: null,
    expiresAtMs: 1000,
    ...overrides,
  };
}
const file = () => join(scratchFolder(), 'ledger.sqlite');

describe('the embedded ledger', () => {
  it('keeps everything over a restart', () => {
    const path = file();
    const first = new SqliteLedger(path);
    first.prepare(newRun(), 1);
    const receipt = first.receive('run-1', RESULT, 2);
    first.close();
    const second = new SqliteLedger(path);
    expect(second.run('run-1')).toEqual({
      ...newRun(),
      state: 'received',
      reasonCode: null,
      scoreF64be: null,
    });
    expect(second.receipt('run-1')).toEqual(receipt);
    expect(second.history('run-1').map(({ from, to, atMs }) => [from, to, atMs])).toEqual([
      [null, 'prepared', 1],
      ['prepared', 'received', 2],
    ]);
    second.close();
  });

  it('gives the same bytes the same receipt and other bytes a conflict', () => {
    const ledger = new SqliteLedger(':memory:');
    ledger.prepare(newRun(), 1);
    const receipt = ledger.receive('run-1', RESULT, 2);
    expect(ledger.receive('run-1', RESULT, 99)).toEqual(receipt);
    expect(codeOf(() => ledger.receive('run-1', Buffer.from('other'), 3))).toBe('result_conflict');
    ledger.accept('run-1', ONE, 4);
    expect(ledger.receive('run-1', RESULT, 99)).toEqual(receipt);
    expect(codeOf(() => ledger.receive('run-2', RESULT, 3))).toBe('run_unknown');
  });

  it('consumes a nonce once, and writes nothing when it was consumed', () => {
    const path = file();
    const ledger = new SqliteLedger(path);
    ledger.prepare(newRun(), 1);
    ledger.receive('run-1', RESULT, 2);
    // As if another run had used it: no two runs share a nonce by themselves.
    expect(() => ledger.prepare(newRun({ evalRunId: 'run-2' }), 1)).toThrow(/UNIQUE/);
    ledger.prepare(newRun({ evalRunId: 'run-2', scoreNonce: 'nonce-2' }), 1);
    const raw = new DatabaseSync(path);
    raw.exec("INSERT INTO consumed_nonces VALUES ('nonce-1', 'run-2')");
    raw.close();
    expect(codeOf(() => ledger.accept('run-1', ONE, 3))).toBe('score_nonce_consumed');
    expect(ledger.run('run-1')).toMatchObject({ state: 'received', scoreF64be: null });
    expect(ledger.history('run-1')).toHaveLength(2);
    ledger.close();
  });

  it('accepts once', () => {
    const ledger = new SqliteLedger(':memory:');
    ledger.prepare(newRun(), 1);
    expect(codeOf(() => ledger.accept('run-1', ONE, 2))).toBe('ledger_transition_refused');
    ledger.receive('run-1', RESULT, 2);
    ledger.accept('run-1', ONE, 3);
    expect(codeOf(() => ledger.accept('run-1', ONE, 4))).toBe('ledger_transition_refused');
    expect(codeOf(() => ledger.reject('run-1', 'quote_malformed', 4))).toBe('ledger_transition_refused');
    expect(ledger.run('run-1')).toMatchObject({ state: 'accepted', scoreF64be: ONE });
  });

  it('lists and counts runs by state, the oldest first, without their plans', () => {
    const ledger = new SqliteLedger(':memory:');
    const others = { submissionId: 'submission-2', agentHash: 'agent-2', expiresAtMs: 2000 };
    ledger.prepare(newRun({ evalRunId: 'run-2', scoreNonce: 'nonce-2', ...others }), 1);
    ledger.prepare(newRun(), 1);
    ledger.prepare(newRun({ evalRunId: 'run-3', scoreNonce: 'nonce-3' }), 1);
    for (const id of ['run-1', 'run-2']) ledger.receive(id, RESULT, 2);
    ledger.accept('run-1', ONE, 3);
    ledger.park('run-2', 'collateral_unavailable', 3);
    const summaryOf = (id: string) => {
      const { planBytes: _, ...rest } = ledger.run(id) ?? newRun();
      return rest;
    };
    expect(ledger.runsIn(['accepted', 'parked'])).toEqual(['run-2', 'run-1'].map(summaryOf));
    expect(ledger.runsIn(['parked'])).toMatchObject([{ reasonCode: 'collateral_unavailable', ...others }]);
    expect(ledger.countIn(['accepted', 'parked'])).toBe(2);
    expect(ledger.countIn(['prepared'])).toBe(1);
    expect(ledger.countIn(['rejected'])).toBe(0);
  });

  it('has a history that cannot be rewritten', () => {
    const path = file();
    const ledger = new SqliteLedger(path);
    ledger.prepare(newRun(), 1);
    const raw = new DatabaseSync(path);
    expect(() => raw.exec("UPDATE history SET to_state = 'accepted'")).toThrow(/append-only/);
    expect(() => raw.exec('DELETE FROM history')).toThrow(/append-only/);
    raw.close();
    ledger.close();
  });

  it('refuses to read what it did not write', () => {
    const path = file();
    const ledger = new SqliteLedger(path);
    ledger.prepare(newRun(), 1);
    const raw = new DatabaseSync(path);
    raw.exec("UPDATE runs SET state = 'winning'");
    expect(codeOf(() => ledger.run('run-1'))).toBe('ledger_unreadable');
    raw.exec("UPDATE runs SET state = 'prepared', reason_code = 'because'");
    expect(codeOf(() => ledger.run('run-1'))).toBe('ledger_unreadable');
    raw.close();
    ledger.close();
  });

  it('refuses tables of another version', () => {
    const path = file();
    new SqliteLedger(path).close();
    const raw = new DatabaseSync(path);
    raw.exec('PRAGMA user_version = 1');
    raw.close();
    expect(codeOf(() => new SqliteLedger(path))).toBe('ledger_unreadable');
  });
});
