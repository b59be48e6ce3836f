import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_PARKED } from '../../challenge/ledger/parking.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { encodeResult, MAX_RESULT_BYTES, parseResult, type Result } from '../../guest/wire/result.ts';
import { type TestChallenge, testChallenge } from '../support/challenge-in-process.ts';
import { call } from '../support/challenge-process.ts';
import { sealedRun } from '../support/ledger.ts';
import { NOW_MS, RUN_TOKEN } from '../support/valid-result.ts';

let challenge: TestChallenge;
beforeEach(async () => {
  challenge = await testChallenge();
});
afterEach(() => challenge.close());

const refusal = (status: number, reason_code: string) => ({
  status,
  json: { schema_version: 1, reason_code },
});
function edited(edit: (result: Result) => void): Buffer {
  const result = parseResult(challenge.body);
  edit(result);
  return encodeResult(result);
}

describe('a RESULT that arrives', () => {
  it('gets a receipt, is judged and accepted', async () => {
    const reply = await challenge.post(challenge.body);
    expect(reply.status).toBe(202);
    const receipt = {
      schema_version: 1,
      eval_run_id: 'run-1',
      result_sha256: sha256Hex(challenge.body),
      received_at_ms: NOW_MS,
    };
    expect(reply.body).toEqual(encodeCanonical(receipt));
    expect(await challenge.state()).toEqual({
      eval_run_id: 'run-1',
      state: 'accepted',
      reason_code: null,
      score_f64be: '3ff0000000000000',
    });
  });

  it('twice, even after the judgement and the expiry, gets the same receipt', async () => {
    const first = await challenge.post(challenge.body);
    await challenge.state();
    challenge.clock.nowMs += 10 * 86_400_000;
    const again = await challenge.post(challenge.body);
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    expect(challenge.ledger.history('run-1').map(({ to }) => to)).toEqual([
      'prepared',
      'received',
      'accepted',
    ]);
  });

  it('with other bytes after the first is a conflict, before and after the judgement', async () => {
    await challenge.post(challenge.body);
    const other = edited((result) => {
      result.score_record.machine.cpus += 1;
    });
    await challenge.state();
    expect(await challenge.post(other)).toMatchObject(refusal(409, 'run_closed'));
  });

  it('after the plan expired is refused', async () => {
    challenge.clock.nowMs = challenge.plan.expires_at_ms;
    expect(await challenge.post(challenge.body)).toMatchObject(refusal(410, 'run_expired'));
    expect(challenge.ledger.receipt('run-1')).toBeNull();
  });

  it.each([
    ['no token', ''],
    ['a wrong token', `${RUN_TOKEN}x`],
    ['its hash', sha256Hex(RUN_TOKEN)],
  ])('with %s is refused like one for an unknown run', async (_name, token) => {
    const wrong = await challenge.post(challenge.body, token);
    const url = challenge.runUrl.replace('run-1', 'run-2');
    const unknown = await call(`${url}/result`, {
      method: 'POST',
      token: RUN_TOKEN,
      ca: challenge.caPem,
      body: challenge.body,
    });
    expect(wrong).toMatchObject(refusal(401, 'run_token_invalid'));
    expect(unknown.body).toEqual(wrong.body);
    expect(unknown.status).toBe(wrong.status);
  });

  it('that is garbage never takes the place of the true one', async () => {
    const garbage: [Buffer, number, string][] = [
      [Buffer.from('not json'), 400, 'json_malformed'],
      [Buffer.concat([challenge.body, Buffer.from('\n')]), 400, 'json_not_canonical'],
      [Buffer.from('{}'), 400, 'schema_invalid'],
      [edited((r) => Object.assign(r, { eval_run_id: 'run-2' })), 422, 'result_ids_mismatch'],
      [edited((r) => Object.assign(r, { submission_id: 'another' })), 422, 'result_ids_mismatch'],
      [edited((r) => Object.assign(r.score_record.machine, { cpus: 99 })), 422, 'report_data_mismatch'],
      [
        edited((r) => Object.assign(r.execution_proof.attestation, { report_data: '0'.repeat(128) })),
        422,
        'report_data_mismatch',
      ],
      [
        edited((r) => Object.assign(r.execution_proof.attestation, { tdx_quote: '00' })),
        422,
        'quote_malformed',
      ],
    ];
    for (const [body, status, code] of garbage) {
      expect(await challenge.post(body)).toMatchObject(refusal(status, code));
    }
    expect((await challenge.post(challenge.body)).status).toBe(202);
  });

  it('more than two of the largest a minute are refused before they are parsed', async () => {
    const largest = Buffer.alloc(MAX_RESULT_BYTES, ' ');
    for (const code of ['json_malformed', 'json_malformed', 'rate_limited']) {
      expect((await challenge.post(largest)).json.reason_code).toBe(code);
    }
    challenge.clock.nowMs += 60_000;
    expect((await challenge.post(challenge.body)).status).toBe(202);
  });

  it('more than ten times a minute is refused, and welcome a minute later', async () => {
    for (let i = 0; i < 10; i++) expect((await challenge.post(Buffer.from('{}'))).status).toBe(400);
    expect(await challenge.post(challenge.body)).toMatchObject(refusal(429, 'rate_limited'));
    challenge.clock.nowMs += 60_000;
    expect((await challenge.post(challenge.body)).status).toBe(202);
  });

  it('while as many wait for collateral as may is refused, and welcome when one of them was judged', async () => {
    const { ledger } = challenge;
    for (let i = 0; i < MAX_PARKED; i++) {
      ledger.prepare(sealedRun(`parked-${i}`, { agentHash: `agent ${i}`, keyNonce: null }), NOW_MS);
      ledger.receive(`parked-${i}`, Buffer.from('{}'), NOW_MS);
      ledger.park(`parked-${i}`, 'collateral_unavailable', NOW_MS);
    }
    expect(await challenge.post(challenge.body)).toMatchObject(refusal(503, 'verifier_backlog_full'));
    ledger.reject('parked-0', 'quote_malformed', NOW_MS);
    expect((await challenge.post(challenge.body)).status).toBe(202);
  });
});

describe('a RESULT that was received', () => {
  it('and does not verify is rejected with the code of its check', async () => {
    const attested = edited((result) => {
      result.execution_proof.attestation.vm_config.vcpu += 1;
    });
    expect((await challenge.post(attested)).status).toBe(202);
    expect(await challenge.state()).toMatchObject({
      state: 'rejected',
      reason_code: 'vm_shape_mismatch',
      score_f64be: null,
    });
    expect(await challenge.post(challenge.body)).toMatchObject(refusal(409, 'run_closed'));
  });
});
