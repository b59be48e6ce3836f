import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { issueServerIdentity, type ServerIdentity } from '../../../challenge/tls.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { deliver } from '../../../guest/stages/deliver.ts';
import type { JournalEvent } from '../../../guest/stages/journal.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { rejectionCode } from '../../support/throws.ts';

const BYTES = Buffer.from('{"the":"result"}');
const RECEIPT = { receipt: 'r-1' };
type Answer = { status: number; body: string } | 'hang up';
const accepted: Answer = { status: 202, body: JSON.stringify(RECEIPT) };
const answer = (status: number, body = '{}'): Answer => ({ status, body });

let identity: ServerIdentity;
let server: Server | null = null;
beforeAll(async () => {
  identity = await issueServerIdentity('127.0.0.1', Date.now());
});
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

/** A challenge that answers with these in turn, the last one for ever; and a host with a clock of its own. */
async function challenge(
  answers: readonly Answer[],
  { expiresInMs = 3_600_000, caPem = identity.caPem } = {},
) {
  const seen: { authorization: string | undefined; body: string }[] = [];
  const events: JournalEvent[] = [];
  const pauses: number[] = [];
  let nowMs = 1_000_000;
  server = createServer(
    { key: identity.keyPem, cert: identity.certificatePem },
    async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const next = answers[Math.min(seen.length, answers.length - 1)];
      seen.push({ authorization: request.headers.authorization, body });
      if (next === undefined || next === 'hang up') request.socket.destroy();
      else response.writeHead(next.status, { location: 'https://127.0.0.1:1/' }).end(next.body);
    },
  );
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const stop = new AbortController();
  const port = (server.address() as AddressInfo).port;
  const plan = {
    result: { url: `https://127.0.0.1:${port}/evaluation/v1/runs/r/result` },
    server_ca_pem: caPem,
    expires_at_ms: nowMs + expiresInMs,
  } as EvalPlan;
  const host = {
    inputs: { planBytes: BYTES, runToken: 'the-token', agentEnv: {} },
    journal: { write: (event: JournalEvent) => void events.push(event) },
    nowMs: () => nowMs,
    clock: {
      monotonicMs: () => nowMs,
      sleep: async (ms: number) => {
        pauses.push(ms);
        nowMs += ms;
      },
    },
    signal: stop.signal,
  };
  return { seen, events, pauses, stop, deliver: () => deliver(plan, BYTES, host) };
}

describe('deliver', () => {
  it.each([200, 202])(
    'posts the exact bytes with the token once, and hands back the receipt of a %i',
    async (status) => {
      const run = await challenge([answer(status, JSON.stringify(RECEIPT))]);
      expect(await run.deliver()).toEqual(RECEIPT);
      expect(run.seen).toEqual([{ authorization: 'Bearer the-token', body: BYTES.toString() }]);
      expect([run.events, run.pauses]).toEqual([[{ event: 'delivery', attempt: 1, status }], []]);
    },
  );

  it('tries again after what may pass, waiting longer each time', async () => {
    const run = await challenge([
      answer(503),
      answer(429),
      'hang up',
      answer(500),
      answer(200, '{"torn'),
      accepted,
    ]);
    expect(await run.deliver()).toEqual(RECEIPT);
    expect(run.pauses).toEqual([500, 1000, 2000, 4000, 8000]);
    expect(run.events.map((event) => 'status' in event && event.status)).toEqual([
      503,
      429,
      null,
      500,
      200,
      202,
    ]);
    expect(new Set(run.seen.map(({ body }) => body)).size).toBe(1);
  });

  it('waits half a minute at the most, and gives up when the plan has expired', async () => {
    const run = await challenge([answer(503)], { expiresInMs: 200_000 });
    expect(await rejectionCode(run.deliver())).toBe('result_undelivered');
    expect(run.pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it.each([301, 400, 401, 404, 409, 413])('takes %i for the last word', async (status) => {
    const run = await challenge([answer(status, '{"reason_code":"run_closed"}'), accepted]);
    expect(await rejectionCode(run.deliver())).toBe('result_refused');
    expect(run.seen).toHaveLength(1);
  });

  it('says why it was refused, without trusting how', async () => {
    const run = await challenge([answer(409, JSON.stringify({ reason_code: 'x'.repeat(500) }))]);
    const error = await run.deliver().catch((cause) => cause as EvaluatorError);
    expect(error).toBeInstanceOf(EvaluatorError);
    expect((error as EvaluatorError).message).toContain(`(${'x'.repeat(64)})`);
    expect((error as EvaluatorError).message).not.toContain('the-token');
  });

  it("believes no other issuer than the plan's", async () => {
    const { caPem } = await issueServerIdentity('127.0.0.1', Date.now());
    const run = await challenge([accepted], { caPem, expiresInMs: 2000 });
    expect(await rejectionCode(run.deliver())).toBe('result_undelivered');
    expect(run.seen).toEqual([]);
  });

  it('ends when the run is ended', async () => {
    const run = await challenge([answer(503)]);
    run.stop.abort(new EvaluatorError('run_aborted', 'ended by SIGTERM'));
    expect(await rejectionCode(run.deliver())).toBe('run_aborted');
  });
});
