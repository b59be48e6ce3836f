import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { exchange, parseModelUrl } from '../../../guest/review/model-call.ts';
import { completion, MISBEHAVIOURS, replying, startChatDouble } from '../../support/chat-double.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

const BODY = Buffer.from('{"messages":[]}');
const LIMITS = { connectMs: 5_000, totalMs: 20_000 };
const KEY = 'sk-the-miners-own';
const alive = () => new AbortController().signal;
const endpointOf = ({ url, caPem }: { url: string; caPem: string }) => ({ url, caPem, apiKey: KEY });

describe('exchange', () => {
  it('sends the exact bytes once, asks for no encoding, and gives the exact reply', async () => {
    const double = await startChatDouble(replying(completion()));
    const reply = await exchange(BODY, endpointOf(double), LIMITS, alive());
    expect(JSON.parse(reply.toString())).toEqual(completion());
    expect(double.connections()).toBe(1);
    expect(double.received).toHaveLength(1);
    const [request] = double.received;
    expect(request?.body).toEqual(BODY);
    expect(request?.path).toBe('/api/v1/chat/completions');
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'accept-encoding': 'identity',
      'content-type': 'application/json',
    });
  });

  it.each(Object.entries(MISBEHAVIOURS))(
    '%s ends in its code, after one request',
    async (_, [behaviour, code]) => {
      const double = await startChatDouble(behaviour);
      const limits = code === 'model_timeout' ? { ...LIMITS, totalMs: 300 } : LIMITS;
      expect(await rejectionCode(exchange(BODY, endpointOf(double), limits, alive()))).toBe(code);
      expect(double.received).toHaveLength(1);
    },
  );

  it('sends nothing to a server of another issuer or name, whatever the environment says', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const foreign = await startChatDouble(replying(completion()), { host: 'localhost' });
    const own = await startChatDouble(replying(completion()));
    const calls = [
      { ...endpointOf(own), caPem: foreign.caPem },
      { ...endpointOf(own), caPem: null },
      endpointOf(foreign),
    ];
    for (const endpoint of calls)
      expect(await rejectionCode(exchange(BODY, endpoint, LIMITS, alive()))).toBe('model_unreachable');
    expect([...own.received, ...foreign.received]).toEqual([]);
  });

  it('uses no proxy of the environment', async () => {
    const double = await startChatDouble(replying(completion()));
    const names = ['HTTPS_PROXY', 'https_proxy', 'NODE_USE_ENV_PROXY'];
    for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : 'http://127.0.0.1:1';
    onTestFinished(() => {
      for (const name of names) delete process.env[name];
    });
    await exchange(BODY, endpointOf(double), LIMITS, alive());
    expect(double.received).toHaveLength(1);
  });

  it('gives up a connection that is not made', async () => {
    // Accepts, and never speaks TLS.
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const call = exchange(BODY, { url, caPem: null, apiKey: KEY }, { ...LIMITS, connectMs: 200 }, alive());
    expect(await rejectionCode(call)).toBe('model_timeout');
  });

  it('ends with the review', async () => {
    const double = await startChatDouble(() => undefined);
    const stop = new AbortController();
    const call = exchange(BODY, endpointOf(double), LIMITS, stop.signal);
    setTimeout(() => stop.abort(), 100);
    expect(await rejectionCode(call)).toBe('review_aborted');
  });

  it('says nothing of the key', async () => {
    const double = await startChatDouble(replying({ error: { message: `bad key ${KEY}` } }, 401));
    await expect(exchange(BODY, endpointOf(double), LIMITS, alive())).rejects.toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(KEY) }),
    );
  });
});

describe('parseModelUrl', () => {
  it.each(['https://openrouter.ai/api/v1/chat/completions', 'http://127.0.0.1:8080/x', 'http://[::1]:1/'])(
    'takes %s',
    (url) => expect(parseModelUrl(url)).toBe(url),
  );
  it.each([
    'http://openrouter.ai/',
    'ftp://127.0.0.1/',
    'https://user@host/',
    'nonsense',
    'http://127.0.0.1.example.org/',
  ])('refuses %s', (url) => expect(codeOf(() => parseModelUrl(url))).toBe('usage'));
});
