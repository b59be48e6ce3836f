import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PARKED_FOR_MS } from '../../../challenge/ledger/parking.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { REVIEW_WINDOW_MS } from '../../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { MAX_MODEL_REPLY_BYTES } from '../../../guest/wire/model-reply.ts';
import { MAX_MODEL_REQUEST_BYTES } from '../../../guest/wire/model-request.ts';
import { AGENT, type ReviewChallenge, reviewChallenge, type Try } from '../../support/review-challenge.ts';
import { codeOf } from '../../support/throws.ts';
import { NOW_MS } from '../../support/valid-result.ts';
import { replyWith, reviewKeys } from '../../support/valid-review.ts';

let challenge: ReviewChallenge;
let one: Try;
beforeEach(async () => {
  challenge = await reviewChallenge();
  one = challenge.prepare();
});
afterEach(() => challenge.close());

const refusal = (status: number, reason_code: string) => ({
  status,
  json: { schema_version: 1, reason_code },
});
const stateOf = async (of = one) => {
  await challenge.acceptor.idle();
  const { state, reason_code } = (await of.get('state')).json;
  return [state, reason_code];
};
const notice = (request = 'request', assignmentId = one.assignment.assignment_id) =>
  encodeCanonical({ assignment_id: assignmentId, planned_request_sha256: sha256Hex(request) });
const failure = (reason: string, assignmentId = one.assignment.assignment_id) =>
  encodeCanonical({ assignment_id: assignmentId, planned_request_sha256: null, reason_code: reason });
const states = () => challenge.ledger.history(one.assignment.session_id).map(({ to }) => to);

describe('an honest guest', () => {
  it('fetches, announces, reports, and its session is judged', async () => {
    expect((await one.get('assignment')).json).toEqual(one.assignment);
    expect((await one.get('artifact')).body).toEqual(AGENT);
    expect((await one.get('rules')).json).toEqual({ rules: 1 });
    expect((await one.get('corpus')).json).toEqual({ corpus: 1 });
    await one.announce();
    const body = one.report();
    const reply = await one.post('report', body);
    expect(reply.status).toBe(202);
    expect(reply.json).toEqual({
      schema_version: 1,
      assignment_id: one.assignment.assignment_id,
      report_sha256: sha256Hex(body),
      received_at_ms: NOW_MS,
    });
    expect(await stateOf()).toEqual(['allowed', null]);
    expect(states()).toEqual(['created', 'prepared', 'deployed', 'announced', 'received', 'allowed']);
  });

  it.each([
    ['reject', 'rejected'],
    ['escalate', 'escalated'],
  ] as const)('brings a verdict %s, which is final', async (verdict, state) => {
    expect(await one.deliver({ response: replyWith(verdict) })).toBe(state);
    expect(codeOf(() => challenge.create())).toBe('review_needs_operator');
    expect(codeOf(() => challenge.prepare(one.assignment.session_id))).toBe('ledger_transition_refused');
    challenge.ledger.reopen(one.assignment.session_id, 'the rule was wrong', NOW_MS);
    expect(await challenge.prepare().deliver()).toBe('allowed');
  });

  it('without a model brings what it has: it escalates', async () => {
    await one.get('assignment');
    expect((await one.post('report', one.report({ response: null }))).status).toBe(202);
    expect(await stateOf()).toEqual(['escalated', null]);
  });
});

describe('the same again', () => {
  it('gives the same report its receipt, for ever, and other bytes a conflict', async () => {
    await one.announce();
    const body = one.report();
    const first = await one.post('report', body);
    await stateOf();
    challenge.clock.nowMs += 10 * REVIEW_WINDOW_MS;
    const again = await one.post('report', body);
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
    const other = one.report({ startedAtMs: NOW_MS, finishedAtMs: NOW_MS });
    // An ECDSA signature is another each time, so these are other bytes.
    expect(await one.post('report', other)).toMatchObject(refusal(409, 'report_conflict'));
  });

  it('gives an announcement its receipt, and another one a conflict', async () => {
    await one.get('assignment');
    const first = await one.post('modelCallStarted', notice());
    challenge.clock.nowMs += 1;
    const again = await one.post('modelCallStarted', notice());
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.body).toEqual(first.body);
    expect(await one.post('modelCallStarted', notice('another'))).toMatchObject(
      refusal(409, 'review_call_conflict'),
    );
  });

  it('in another session is a report of that session no more', async () => {
    await one.announce();
    const body = one.report();
    await one.post('report', body);
    expect(await stateOf()).toEqual(['allowed', null]);
    const next = challenge.prepare();
    await next.announce();
    expect(await next.post('report', body)).toMatchObject(refusal(422, 'review_ids_mismatch'));
    expect(await stateOf(next)).toEqual(['announced', null]);
  });
});

describe('a token', () => {
  it.each(['report', 'failure', 'modelCallStarted'] as const)(
    'that is wrong for %s is refused like one for an unknown assignment',
    async (resource) => {
      const body = failure('artifact_hash_mismatch');
      const { token } = one;
      const flipped = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
      const wrong = await one.post(resource, body, flipped);
      expect(wrong).toMatchObject(refusal(401, 'review_token_invalid'));
      for (const other of ['', sha256Hex(token), 'x.y']) {
        expect((await one.post(resource, body, other)).body).toEqual(wrong.body);
      }
      expect(await stateOf()).toEqual(['prepared', null]);
    },
  );

  it('of an earlier try opens nothing but its receipt', async () => {
    await one.get('assignment');
    await one.post('failure', failure('challenge_unreachable'));
    expect(await stateOf()).toEqual(['failed', 'challenge_unreachable']);
    const next = challenge.prepare(one.assignment.session_id);
    expect(next.assignment.attempt).toBe(2);
    expect(next.assignment.review_nonce).not.toBe(one.assignment.review_nonce);
    for (const resource of ['assignment', 'artifact', 'rules', 'corpus'] as const) {
      expect(await one.get(resource)).toMatchObject(refusal(409, 'assignment_superseded'));
    }
    expect(await one.post('report', one.report())).toMatchObject(refusal(409, 'assignment_superseded'));
    expect(await one.post('modelCallStarted', notice())).toMatchObject(refusal(409, 'assignment_superseded'));
    expect(await next.deliver()).toBe('allowed');
  });
});

describe('a session', () => {
  it('whose model was announced and that brings no report is escalated, and needs the operator', async () => {
    await one.announce();
    challenge.clock.nowMs += REVIEW_WINDOW_MS;
    challenge.upkeep();
    expect(await stateOf()).toEqual(['escalated', 'review_report_missing']);
    expect(codeOf(() => challenge.create())).toBe('review_needs_operator');
    expect(await one.post('report', one.report())).toMatchObject(refusal(409, 'review_closed'));
  });

  it('whose guest gives up after the announcement is escalated, before it may be tried again', async () => {
    const foreign = challenge.prepare.bind(challenge, one.assignment.session_id);
    await one.get('assignment');
    expect((await one.post('failure', failure('no_code_of_ours'))).status).toBe(200);
    expect(await stateOf()).toEqual(['failed', 'review_guest_failed']);
    const next = foreign();
    await next.announce();
    await next.post('failure', failure('challenge_unreachable', next.assignment.assignment_id));
    expect(await stateOf(next)).toEqual(['escalated', 'challenge_unreachable']);
    expect(codeOf(foreign)).toBe('ledger_transition_refused');
  });

  it('that has expired takes nothing, and may be tried again', async () => {
    await one.get('assignment');
    challenge.clock.nowMs += REVIEW_WINDOW_MS;
    expect(await one.post('report', one.report())).toMatchObject(refusal(410, 'assignment_expired'));
    expect(await one.get('artifact')).toMatchObject(refusal(410, 'assignment_expired'));
    expect(await one.post('modelCallStarted', notice())).toMatchObject(refusal(410, 'assignment_expired'));
    const next = challenge.prepare(one.assignment.session_id);
    expect(await next.deliver()).toBe('allowed');
  });

  it('that was called off takes nothing, and one with an announced model cannot be', async () => {
    challenge.ledger.cancel(one.assignment.session_id, NOW_MS);
    expect(await one.get('assignment')).toMatchObject(refusal(409, 'review_closed'));
    const next = challenge.prepare(one.assignment.session_id);
    await next.announce();
    expect(codeOf(() => challenge.ledger.cancel(one.assignment.session_id, NOW_MS))).toBe(
      'ledger_transition_refused',
    );
  });

  it('is the only open one of its agent', async () => {
    expect(codeOf(() => challenge.create())).toBe('review_session_open');
    await one.announce();
    expect(codeOf(() => challenge.create())).toBe('review_session_open');
  });
});

describe('a report', () => {
  it('that does not verify ends its session: only an operator gives another', async () => {
    await one.announce();
    const text = one.report().toString();
    const broken = Buffer.from(text.replace(/"vcpu":(\d+)/, '"vcpu":99'));
    expect((await one.post('report', broken)).status).toBe(202);
    expect(await stateOf()).toEqual(['trust_failed', 'vm_shape_mismatch']);
    expect(codeOf(() => challenge.create())).toBe('review_needs_operator');
  });

  it('of a request that was not announced ends its session', async () => {
    await one.get('assignment');
    await one.post('modelCallStarted', notice('another request'));
    expect((await one.post('report', one.report())).status).toBe(202);
    expect(await stateOf()).toEqual(['trust_failed', 'review_call_mismatch']);
  });

  it('over a nonce that was used before ends its session', async () => {
    await one.announce();
    const raw = new DatabaseSync(challenge.path);
    raw.exec('PRAGMA foreign_keys = OFF');
    raw
      .prepare('INSERT INTO consumed_review_nonces VALUES (?, ?)')
      .run(one.assignment.review_nonce, 'another session');
    raw.close();
    expect((await one.post('report', one.report())).status).toBe(202);
    expect(await stateOf()).toEqual(['trust_failed', 'review_nonce_consumed']);
  });

  it('of the largest size is received and judged', async () => {
    const userText = 'x'.repeat(MAX_MODEL_REQUEST_BYTES - 4096);
    const response = Buffer.concat([replyWith('allow'), Buffer.alloc(MAX_MODEL_REPLY_BYTES - 4096, ' ')]);
    expect(await one.deliver({ userText, response })).toBe('allowed');
  });

  it('that is garbage never takes the place of the true one', async () => {
    await one.announce();
    const text = one.report().toString();
    const garbage: [string, number, string][] = [
      ['not json', 400, 'json_malformed'],
      [`${text}\n`, 400, 'json_not_canonical'],
      ['{}', 400, 'schema_invalid'],
      [text.replaceAll(/"session_id":"session-/g, '"session_id":"sessioN-'), 422, 'review_ids_mismatch'],
      [text.replace('"files":2', '"files":3'), 422, 'report_data_mismatch'],
      [text.replace(/"tdx_quote":"[0-9a-f]+"/, '"tdx_quote":"00"'), 422, 'quote_malformed'],
    ];
    for (const [body, status, code] of garbage) {
      expect(await one.post('report', Buffer.from(body))).toMatchObject(refusal(status, code));
    }
    expect((await one.post('report', Buffer.from(text))).status).toBe(202);
    expect(await stateOf()).toEqual(['allowed', null]);
  });

  it('waits for collateral, a day at most, and then counts as escalate', async () => {
    await challenge.close();
    let up = false;
    challenge = await reviewChallenge({
      collateral: async () => {
        if (up) return challenge.platform.collateral;
        throw new EvaluatorError('collateral_unavailable', 'the collateral service does not answer');
      },
    });
    one = challenge.prepare();
    expect(await one.deliver()).toBe('parked');
    expect(await stateOf()).toEqual(['parked', 'collateral_unavailable']);
    up = true;
    challenge.upkeep();
    expect(await stateOf()).toEqual(['allowed', null]);
    up = false;
    const next = challenge.prepare();
    expect(await next.deliver()).toBe('parked');
    challenge.clock.nowMs += PARKED_FOR_MS;
    challenge.upkeep();
    expect(await stateOf(next)).toEqual(['escalated', 'collateral_unavailable']);
  });

  it('waits where the root that its assignment was signed under was replaced', async () => {
    await challenge.close();
    challenge = await reviewChallenge({ root: { ...reviewKeys().root, publicKey: 'ab'.repeat(32) } });
    one = challenge.prepare();
    expect(await one.deliver()).toBe('parked');
  });

  it('is left alone by a verifier that breaks, which says so', async () => {
    await challenge.close();
    challenge = await reviewChallenge({
      collateral: async () => {
        throw new TypeError('a defect');
      },
    });
    one = challenge.prepare();
    expect(await one.deliver()).toBe('received');
    expect(challenge.log).toContainEqual({
      event: 'verifier_failed',
      session_id: one.assignment.session_id,
      detail: 'verifier: a defect',
    });
  });
});

describe('bounds', () => {
  it('more than ten times a minute of one address is refused, and welcome a minute later', async () => {
    for (let i = 0; i < 10; i++) expect((await one.post('report', Buffer.from('{}'))).status).toBe(400);
    expect(await one.post('report', one.report())).toMatchObject(refusal(429, 'rate_limited'));
    expect((await one.get('assignment')).status).toBe(200);
    challenge.clock.nowMs += 60_000;
    expect((await one.post('report', one.report({ response: null }))).status).toBe(202);
  });

  it('a notice above 4 KiB is not read', async () => {
    const big = Buffer.alloc(4097, 0x20);
    expect(await one.post('modelCallStarted', big)).toMatchObject(refusal(413, 'request_too_large'));
    expect(await one.post('failure', big)).toMatchObject(refusal(413, 'request_too_large'));
  });

  it('a notice that names another assignment is refused', async () => {
    await one.get('assignment');
    const other = 'review-of-another';
    expect(await one.post('modelCallStarted', notice('request', other))).toMatchObject(
      refusal(422, 'review_ids_mismatch'),
    );
    expect(await one.post('failure', failure('usage', other))).toMatchObject(
      refusal(422, 'review_ids_mismatch'),
    );
  });
});
