import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import { constants } from '@phala/dcap-qvl';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { issueServerIdentity } from '../../../challenge/tls.ts';
import { parseEventLog } from '../../../guest/attest/event-log.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { recipientKey } from '../../../guest/wire/key-envelope.ts';
import { scoreReportData } from '../../../guest/wire/report-data.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { createKmsChain } from '../../../simulator/tls-key.ts';
import { withTcbInfo } from '../../support/evidence.ts';
import { type KeyChallenge, keyChallenge, livePlatform } from '../../support/key-challenge.ts';
import {
  askForKeys,
  evidenceFrom,
  type Guest,
  keyPair,
  makeRequest,
  openSession,
  post,
  randomHex,
  sayStarted,
} from '../../support/key-client.ts';
import { withLog, withRegisters, withRuntimeEvents } from '../../support/patched-platform.ts';
import { RUN_TOKEN } from '../../support/valid-result.ts';

let challenge: KeyChallenge;
beforeEach(async () => {
  challenge = await keyChallenge();
});
afterEach(() => challenge.close());

async function restart(...args: Parameters<typeof keyChallenge>): Promise<void> {
  await challenge.close();
  challenge = await keyChallenge(...args);
}
const outcomes = () => challenge.ledger.attempts('run-1').map(({ outcome }) => outcome);
const denial = (status: number, reason_code: string) => ({
  status,
  json: { released: false, reason_code },
  keys: null,
});
/** A guest on a machine that differs from the one whose measurement is published. */
const guestOn = async (platform: Platform): Promise<Guest> =>
  challenge.guest({ platform, pair: await keyPair(platform, challenge.plan) });

const debugTd = () => withRegisters(challenge.platform, { tdAttributes: '0100001000000000' });

describe('a quote that is bound to something else', () => {
  /** Terminates TLS for a guest that trusts it, and forwards the request on a connection of its own. */
  async function relay(victim: Guest, attacker: Guest) {
    const own = await issueServerIdentity('127.0.0.1', Date.now());
    const { pathname } = new URL(victim.plan.key_release?.url ?? '');
    const middle = createServer({ cert: own.certificatePem, key: own.keyPem }).listen(0, '127.0.0.1');
    await once(middle, 'listening');
    const forwarded = once(middle, 'secureConnection').then(async ([socket]) => {
      const chunks: Buffer[] = [];
      (socket as TLSSocket).on('data', (chunk: Buffer) => chunks.push(chunk));
      await once(socket as TLSSocket, 'end');
      const session = await openSession(attacker.plan.key_release?.url ?? '', attacker.ca, attacker.pair);
      return post(session, pathname, RUN_TOKEN, Buffer.concat(chunks));
    });
    const { port } = middle.address() as { port: number };
    const { socket, exporter } = await openSession(`https://127.0.0.1:${port}`, own.caPem, victim.pair);
    const body = makeRequest(
      { ...victim, spkiDigest: victim.pair.spkiDigest },
      exporter,
      recipientKey().publicHex,
    );
    socket.end(body);
    const reply = await forwarded;
    middle.close();
    socket.destroy();
    return reply;
  }

  it('a genuine guest relayed by a man in the middle, even one who stole its TLS key', async () => {
    const victim = await challenge.guest();
    expect(await relay(victim, victim)).toMatchObject({
      status: 403,
      json: { released: false, reason_code: 'report_data_mismatch' },
    });
    expect(outcomes()).toEqual(['denied']);
  });

  it('the same through a machine with the same measurement but another key', async () => {
    const [victim, attacker] = [await challenge.guest(), await challenge.guest()];
    expect(await relay(victim, attacker)).toMatchObject({
      status: 403,
      json: { released: false, reason_code: 'report_data_mismatch' },
    });
  });

  it('a request replayed on another connection', async () => {
    const guest = await challenge.guest();
    const { url } = guest.plan.key_release ?? { url: '' };
    const first = await openSession(url, guest.ca, guest.pair);
    const body = makeRequest(
      { ...guest, spkiDigest: guest.pair.spkiDigest },
      first.exporter,
      recipientKey().publicHex,
    );
    expect((await post(first, new URL(url).pathname, RUN_TOKEN, body)).json.released).toBe(true);
    const second = await openSession(url, guest.ca, guest.pair);
    expect((await post(second, new URL(url).pathname, RUN_TOKEN, body)).json).toEqual({
      released: false,
      reason_code: 'report_data_mismatch',
    });
    expect(challenge.ledger.grants('run-1')).toHaveLength(1);
  });

  it.each([
    ['an old nonce', { nonce: 'an-older-nonce' }],
    ['another run', { evalRunId: 'run-2' }],
    ['another plan', { planDigest: 'ab'.repeat(32) }],
    ['another certificate', { spkiDigest: 'ab'.repeat(32) }],
    ['another connection', { tlsExporter: 'ab'.repeat(32) }],
    ['another recipient', { recipientPublicKey: randomHex(32) }],
  ])('%s in its preimage beside the right document', async (_name, binding) => {
    expect(await askForKeys(await challenge.guest(), { binding })).toMatchObject(
      denial(403, 'report_data_mismatch'),
    );
    expect(outcomes()).toEqual(['denied']);
  });

  it('the score domain', async () => {
    const { plan, platform } = challenge;
    const reportData = scoreReportData({
      agentHash: plan.agent.agent_hash,
      measurement: platform.measurement,
      evalRunId: plan.eval_run_id,
      scoreNonce: plan.score_nonce,
      scoresDigest: 'ab'.repeat(32),
      taskIds: plan.tasks.map(({ task_id }) => task_id),
    });
    expect(await askForKeys(await challenge.guest(), { reportData })).toMatchObject(
      denial(403, 'report_data_mismatch'),
    );
  });

  it('its recipient key swapped on the way', async () => {
    const swapped = { request: { recipient_public_key: recipientKey().publicHex } };
    expect(await askForKeys(await challenge.guest(), swapped)).toMatchObject(
      denial(403, 'report_data_mismatch'),
    );
  });
});

describe('a request that names something else', () => {
  it.each([
    [{ eval_run_id: 'run-2' }, 403, 'key_request_ids_mismatch'],
    [{ nonce: 'another-nonce' }, 403, 'key_nonce_mismatch'],
    [{ schema_version: 2 }, 400, 'schema_invalid'],
    [{ task_ids: ['task-z'] }, 400, 'schema_invalid'],
    [{ quote: '00' }, 403, 'quote_malformed'],
    [{ quote: '' }, 403, 'quote_malformed'],
  ])('%j is refused and uses nothing up', async (request, status, code) => {
    expect(await askForKeys(await challenge.guest(), { request: request as never })).toMatchObject(
      denial(status, code),
    );
    expect(outcomes()).toEqual([]);
  });

  it('a recipient that nobody can encrypt to uses its attempt up', async () => {
    const small = '00'.repeat(32);
    const changes = { binding: { recipientPublicKey: small }, request: { recipient_public_key: small } };
    expect(await askForKeys(await challenge.guest(), changes)).toMatchObject(
      denial(403, 'key_envelope_invalid'),
    );
    expect(outcomes()).toEqual(['denied']);
    expect(challenge.ledger.grants('run-1')).toEqual([]);
  });
});

describe('a client certificate', () => {
  const day = 86_400;
  const now = () => Math.floor(Date.now() / 1000);
  const asking = async (options: Parameters<typeof keyPair>[2]) => {
    const pair = await keyPair(challenge.platform, challenge.plan, options);
    const reply = await askForKeys(await challenge.guest({ pair }));
    expect(challenge.ledger.attempts('run-1')).toEqual([]);
    return reply;
  };

  it('of another app under the same KMS root', async () => {
    const other = await livePlatform({ appCompose: Buffer.from('{"name":"another app"}') });
    expect(await asking({ appId: Buffer.alloc(20, 9), evidence: evidenceFrom(other) })).toMatchObject(
      denial(403, 'ra_tls_app_mismatch'),
    );
  });

  it('whose quote is of another TD, though of the same app id', async () => {
    const other = await livePlatform({ appCompose: Buffer.from('{"name":"another app"}') });
    expect(await asking({ evidence: evidenceFrom(other) })).toMatchObject(
      denial(403, 'ra_tls_registers_mismatch'),
    );
  });

  it('whose quote is for another key', async () => {
    const evidence = () => evidenceFrom(challenge.platform)(Buffer.alloc(64, 1));
    expect(await asking({ evidence })).toMatchObject(denial(403, 'ra_tls_binding_mismatch'));
  });

  it('expired', async () => {
    const args = { not_before: now() - 2 * day, not_after: now() - day };
    expect(await asking({ args })).toMatchObject(denial(403, 'client_certificate_expired'));
  });

  it('not yet valid', async () => {
    const args = { not_before: now() + day, not_after: now() + 2 * day };
    expect(await asking({ args })).toMatchObject(denial(403, 'client_certificate_not_yet_valid'));
  });

  it.each([
    ['from before the plan', { not_before: now() - day }],
    ['beyond the plan', { not_after: now() + day }],
  ])('valid %s, where the agent can set the dates', async (_name, args) => {
    expect(await asking({ args })).toMatchObject(denial(403, 'client_certificate_dates'));
  });

  it('valid beyond the plan, from an agent that cannot set the dates, is good', async () => {
    const pair = await keyPair(challenge.platform, challenge.plan, {
      form: 'quote-and-log',
      args: { not_before: now() - day, not_after: now() + day },
    });
    expect((await askForKeys(await challenge.guest({ pair }))).status).toBe(200);
  });

  it.each([
    ['a server', { usage_client_auth: false, usage_server_auth: true }],
    ['nothing in particular', { usage_client_auth: false }],
  ])('for %s', async (_name, args) => {
    expect(await asking({ args })).toMatchObject(denial(403, 'client_certificate_purpose'));
  });

  it('without evidence', async () => {
    expect(await asking({ args: { usage_ra_tls: false } })).toMatchObject(
      denial(403, 'ra_tls_evidence_missing'),
    );
  });

  it("of a KMS of the host's own", async () => {
    const chain = await createKmsChain(await livePlatform({ seed: Buffer.alloc(32, 8) }));
    expect(await asking({ chain })).toMatchObject(denial(403, 'client_certificate_untrusted'));
  });

  it('whose quote nobody signed', async () => {
    const forged = (reportData: Buffer) => {
      const evidence = evidenceFrom(challenge.platform)(reportData);
      const quote = Buffer.from(evidence.quote);
      quote.writeUInt8(quote.readUInt8(640) ^ 1, 640);
      return { ...evidence, quote };
    };
    const pair = await keyPair(challenge.platform, challenge.plan, { evidence: forged });
    expect(await askForKeys(await challenge.guest({ pair }))).toMatchObject(
      denial(403, 'ra_tls_quote_invalid'),
    );
    expect(outcomes()).toEqual(['denied']);
  });

  it('whose quote is of another quoting enclave, under another root', async () => {
    const other = await livePlatform({ seed: Buffer.alloc(32, 8) });
    const { platform } = challenge;
    const forged = { ...withRegisters(other, platform.registers), eventLog: platform.eventLog };
    const sameConfig = `01${platform.measurement.compose_hash}${'00'.repeat(15)}`;
    const evidence = evidenceFrom(withRegisters(forged, { mrConfigId: sameConfig }));
    const pair = await keyPair(platform, challenge.plan, { evidence });
    expect(await askForKeys(await challenge.guest({ pair }))).toMatchObject(
      denial(403, 'ra_tls_quote_invalid'),
    );
  });
});

describe('a machine that is not the published one', () => {
  it.each(['mrtd', 'rtmr0', 'rtmr1', 'rtmr2'] as const)('%s differs', async (register) => {
    const { platform } = challenge;
    const other =
      register === 'mrtd'
        ? withRegisters(platform, { mrtd: 'ab'.repeat(48) })
        : withLog(platform, (log) => {
            const first = log.find(({ imr }) => imr === Number(register.slice(-1)));
            if (first) first.digest = 'ab'.repeat(48);
            return log;
          });
    expect(await askForKeys(await guestOn(other))).toMatchObject(denial(403, 'measurement_not_allowed'));
    expect(outcomes()).toEqual(['denied']);
  });

  it('another compose', async () => {
    const hash = sha256Hex('another compose');
    const booted = withRuntimeEvents(challenge.platform, { 'compose-hash': Buffer.from(hash, 'hex') });
    const other = withRegisters(booted, { mrConfigId: `01${hash}${'00'.repeat(15)}` });
    expect(await askForKeys(await guestOn(other))).toMatchObject(denial(403, 'measurement_not_allowed'));
  });

  it('keys of a KMS with the same name and another id', async () => {
    const provider = Buffer.from(JSON.stringify({ name: 'kms', id: 'ab'.repeat(91) }));
    const other = withRuntimeEvents(challenge.platform, { 'key-provider': provider });
    expect(await askForKeys(await guestOn(other))).toMatchObject(denial(403, 'key_provider_not_allowed'));
  });

  it('an event log of another boot', async () => {
    const other = withRuntimeEvents(challenge.platform, { 'instance-id': Buffer.alloc(20, 1) });
    const request = { event_log: parseEventLog(other.eventLog) };
    expect(await askForKeys(await challenge.guest(), { request })).toMatchObject(
      denial(403, 'event_log_replay_mismatch'),
    );
    expect(outcomes()).toEqual(['denied']);
  });

  it('a debug TD', async () => {
    expect(await askForKeys(await guestOn(debugTd()))).toMatchObject(denial(403, 'td_debug'));
    expect(outcomes()).toEqual(['denied']);
  });

  it('a simulator, where the root is the production one', async () => {
    await restart({ policy: { rootDer: constants.TRUSTED_ROOT_CA_DER } });
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(403, 'root_not_trusted'));
    // Nothing showed that a TD asked, so nothing is used up.
    expect(outcomes()).toEqual(['refused']);
  });

  it('a platform that lags behind', async () => {
    const platform = await livePlatform({ faults: [{ name: 'tcb-out-of-date' }] });
    await restart({ platform });
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(403, 'tcb_status_refused'));
    expect(outcomes()).toEqual(['denied']);
  });
});

describe('attempts', () => {
  it('a rival with the right certificate and the wrong token burns none', async () => {
    const rival = await challenge.guest({ token: `${RUN_TOKEN}x` });
    for (let i = 0; i < 3; i++) {
      expect(await askForKeys(rival)).toMatchObject(denial(401, 'run_token_invalid'));
    }
    expect(challenge.ledger.attempts('run-1')).toEqual([]);
    expect(challenge.log).toEqual([]);
    expect((await askForKeys(await challenge.guest())).status).toBe(200);
  });

  it('an unknown run is answered like a wrong token', async () => {
    const guest = await challenge.guest();
    const url = guest.plan.key_release?.url.replace('run-1', 'run-9') ?? '';
    const session = await openSession(url, guest.ca, guest.pair);
    const reply = await post(session, new URL(url).pathname, RUN_TOKEN, Buffer.from('{}'));
    expect(reply).toMatchObject({ status: 401, json: { reason_code: 'run_token_invalid' } });
  });

  it('two denials leave nothing for a third', async () => {
    for (let i = 0; i < 2; i++) {
      expect(await askForKeys(await guestOn(debugTd()))).toMatchObject(denial(403, 'td_debug'));
    }
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(409, 'grants_exhausted'));
  });

  it('outages cost nothing, and pass', async () => {
    const platform = await livePlatform();
    let collateral: () => unknown = () => {
      throw new EvaluatorError('collateral_unavailable', 'the service does not answer');
    };
    await restart({ platform, policy: { collateral: async () => collateral() } });
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(503, 'collateral_unavailable'));
    const stale = withTcbInfo(platform, (info) => {
      info.nextUpdate = '2026-02-01T00:00:00Z';
    });
    collateral = () => stale;
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(503, 'collateral_expired'));
    collateral = () => {
      throw new TypeError('a defect');
    };
    expect(await askForKeys(await challenge.guest())).toMatchObject(denial(500, 'verifier_failed'));
    collateral = () => platform.collateral;
    expect((await askForKeys(await challenge.guest())).status).toBe(200);
    expect(outcomes()).toEqual(['outage', 'outage', 'outage', 'granted']);
  });

  it('a second guest for the same attempt gets nothing', async () => {
    await restart({ plan: { max_grants: 1 } });
    const replies = await Promise.all(
      [await challenge.guest(), await challenge.guest()].map((guest) => askForKeys(guest)),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(challenge.ledger.grants('run-1')).toHaveLength(1);
  });

  it('a newer grant supersedes an older one, whose guest may not start', async () => {
    const [first, second] = [await challenge.guest(), await challenge.guest()];
    const older = (await askForKeys(first)).keys?.grant_id ?? '';
    const newer = (await askForKeys(second)).keys?.grant_id ?? '';
    const refusal = (status: number, code: string) => ({ status, json: { reason_code: code } });
    expect(await sayStarted(first, older)).toMatchObject(refusal(409, 'grant_superseded'));
    expect(await sayStarted(first, newer)).toMatchObject(refusal(403, 'grant_certificate_mismatch'));
    expect((await sayStarted(second, newer)).status).toBe(200);
    expect(await askForKeys(first)).toMatchObject(denial(409, 'run_started'));
  });

  it('a grant for one run starts no other', async () => {
    const other = challenge.prepare({
      eval_run_id: 'run-2',
      agent: { ...challenge.plan.agent, agent_hash: 'ab'.repeat(32) },
    });
    const guest = await challenge.guest();
    const grantId = (await askForKeys(guest)).keys?.grant_id ?? '';
    const there = { ...guest, plan: other };
    expect((await askForKeys(there)).status).toBe(200);
    expect(await sayStarted(there, grantId)).toMatchObject({
      status: 403,
      json: { reason_code: 'grant_unknown' },
    });
    expect(await sayStarted(guest, grantId, { eval_run_id: 'run-2' })).toMatchObject({
      status: 403,
      json: { reason_code: 'key_request_ids_mismatch' },
    });
  });

  it('an expired plan gives no key and starts nothing', async () => {
    const guest = await challenge.guest();
    const grantId = (await askForKeys(guest)).keys?.grant_id ?? '';
    challenge.clock.skewMs = 3_600_001;
    expect(await askForKeys(guest)).toMatchObject(denial(410, 'run_expired'));
    expect(await sayStarted(guest, grantId)).toMatchObject({
      status: 410,
      json: { reason_code: 'run_expired' },
    });
  });

  it('a started notice with a wrong token says nothing', async () => {
    const guest = await challenge.guest();
    const grantId = (await askForKeys(guest)).keys?.grant_id ?? '';
    const reply = await sayStarted({ ...guest, token: 'wrong' }, grantId);
    expect(reply).toMatchObject({ status: 401, json: { reason_code: 'run_token_invalid' } });
    expect(challenge.ledger.started('run-1')).toBeNull();
  });

  it('more than ten a minute are too many, and cost nothing', async () => {
    const guest = await challenge.guest();
    const nonce = { request: { nonce: 'wrong' } };
    for (let i = 0; i < 10; i++) expect((await askForKeys(guest, nonce)).status).toBe(403);
    expect(await askForKeys(guest)).toMatchObject(denial(429, 'rate_limited'));
    challenge.clock.skewMs = 60_000;
    expect((await askForKeys(guest)).status).toBe(200);
  });
});
