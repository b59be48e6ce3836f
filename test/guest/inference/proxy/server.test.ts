import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Meter } from '../../../../guest/inference/proxy/meter.ts';
import { CHAT_PATH, createProxyServer, type ModelProxy } from '../../../../guest/inference/proxy/server.ts';
import {
  type ChatDouble,
  choice,
  completion,
  MISBEHAVIOURS,
  replying,
  startChatDouble,
} from '../../../support/chat-double.ts';

const BEARER = 'f'.repeat(64);
const API_KEY = 'sk-upstream-secret';
const CAPS = { requests: 1000, sent_bytes: 1e9, received_bytes: 1e9, tokens: 1e9 };
const ASK = { model: 'vendor/model-1', messages: [{ role: 'user', content: 'hi' }] };
const SAID = completion({ choices: [choice(null, 'hello')] });

const closeOf = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));

interface Served {
  port: number;
  meter: Meter;
  /** Status and code, or the content of the answer. */
  ask(body: unknown, headers?: Record<string, string>): Promise<[number, string]>;
  /** What comes back for these bytes, until the proxy closes. */
  raw(...pieces: (string | Buffer)[]): Promise<string>;
}

async function serve(
  double: Pick<ChatDouble, 'url' | 'caPem'>,
  changes: Partial<ModelProxy> = {},
): Promise<Served> {
  const meter = new Meter(CAPS, () => undefined);
  const server = createProxyServer({
    bearer: BEARER,
    offer: { models: ['vendor/model-1'], maxReplyTokens: 100 },
    upstream: { url: double.url, apiKey: API_KEY, caPem: double.caPem, connectMs: 5000, totalMs: 5000 },
    meter,
    receiveMs: 5000,
    nowMs: () => 0,
    ...changes,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    meter: changes.meter ?? meter,
    ask: async (body, headers = {}) => {
      const reply = await fetch(`http://127.0.0.1:${port}${CHAT_PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${BEARER}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
      const said = (await reply.json()) as {
        error?: { code: string };
        choices?: { message: { content: string } }[];
      };
      return [reply.status, said.error?.code ?? said.choices?.[0]?.message.content ?? ''];
    },
    raw: async (...pieces) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('error', () => undefined);
      const closed = closeOf(socket);
      for (const piece of pieces) socket.write(piece);
      await closed;
      return text;
    },
  };
}

const head = (length: number | string, more = '') =>
  `POST ${CHAT_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${BEARER}\r\nContent-Length: ${length}\r\n${more}\r\n`;
const BODY = JSON.stringify(ASK);

describe('a request that may be sent', () => {
  it('goes out as our own, with the key, and comes back as our own', async () => {
    const double = await startChatDouble(replying(SAID, 200, { 'set-cookie': 'a=b', 'x-request-id': 'up' }));
    const proxy = await serve(double);
    const reply = await proxy.raw(
      head(BODY.length, 'X-Evil: 1\r\nCookie: c\r\nX-Forwarded-For: 1.1.1.1\r\nOpenAI-Organization: o\r\n'),
      BODY,
    );
    expect(double.received).toHaveLength(1);
    const [got] = double.received;
    expect(got?.path).toBe('/api/v1/chat/completions');
    expect(Object.keys(got?.headers ?? {}).sort()).toEqual(
      [
        'accept',
        'accept-encoding',
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
      ].sort(),
    );
    expect(got?.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(JSON.parse(String(got?.body))).toEqual({ ...ASK, max_tokens: 100, stream: false });
    expect(reply).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(reply).not.toMatch(/cookie|x-request-id|sk-upstream/i);
    expect(proxy.meter.counts).toMatchObject({
      requests: 1,
      refused: 0,
      prompt_tokens: 1,
      completion_tokens: 1,
    });
    expect(proxy.meter.counts.sent_bytes).toBe(got?.body.length);
    expect(proxy.meter.counts.received_bytes).toBeGreaterThan(0);
  });
});

describe('what is refused before anything is sent', () => {
  it.each<[string, (proxy: Served) => Promise<unknown>, unknown]>([
    ['no key', ({ ask }) => ask(ASK, { authorization: '' }), [401, 'unauthorized']],
    ['another key', ({ ask }) => ask(ASK, { authorization: `Bearer ${API_KEY}` }), [401, 'unauthorized']],
    ['a preset', ({ ask }) => ask({ ...ASK, preset: 'x' }), [400, 'field_refused']],
    ['streaming', ({ ask }) => ask({ ...ASK, stream: true }), [400, 'field_refused']],
    ['another model', ({ ask }) => ask({ ...ASK, model: 'x' }), [400, 'model_refused']],
    ['no JSON', ({ ask }) => ask('hello'), [400, 'request_malformed']],
    ['an encoded body', ({ ask }) => ask(ASK, { 'content-encoding': 'gzip' }), [400, 'request_malformed']],
  ])('%s', async (_, act, expected) => {
    const double = await startChatDouble(replying(SAID));
    const proxy = await serve(double);
    expect(await act(proxy)).toEqual(expected);
    expect(double.connections()).toBe(0);
    expect(proxy.meter.counts).toMatchObject({ requests: 0, refused: 1 });
  });

  it.each<[string, string[], RegExp]>([
    ['another path', [head(BODY.length).replace(CHAT_PATH, '/v1/responses'), BODY], / 404 .*route_unknown/s],
    [
      'an address as path',
      [head(BODY.length).replace(CHAT_PATH, `http://elsewhere${CHAT_PATH}`), BODY],
      / 404 /,
    ],
    ['a query', [head(BODY.length).replace(CHAT_PATH, `${CHAT_PATH}?preset=x`), BODY], / 404 /],
    ['a tunnel', ['CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere\r\n\r\n'], /^$/],
    ['another method', [head(0).replace('POST', 'GET')], / 405 .*method_not_allowed/s],
    ['a said 1 GB', [head(1e9)], / 413 .*request_too_large/s],
    ['a bare line feed in a header', [head(BODY.length, 'X: a\nAuthorization: b\r\n'), BODY], / 400 /],
    ['two lengths', [head(BODY.length, `Content-Length: ${BODY.length + 1}\r\n`), BODY], / 400 /],
    ['a length and chunks', [head(BODY.length, 'Transfer-Encoding: chunked\r\n'), BODY], / 400 /],
    ['a negative length', [head(-1)], / 400 /],
    ['a head of 20 kB', [head(0, `X: ${'a'.repeat(20_000)}\r\n`)], / 431 /],
  ])('%s', async (_, pieces, reply) => {
    const double = await startChatDouble(replying(SAID));
    const proxy = await serve(double);
    expect(await proxy.raw(...pieces)).toMatch(reply);
    expect(double.connections()).toBe(0);
  });

  it('a body without an end, within bounded memory', async () => {
    const double = await startChatDouble(replying(SAID));
    const proxy = await serve(double);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    const closed = closeOf(socket);
    let gone = false;
    void closed.then(() => {
      gone = true;
    });
    socket.write(head(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked'));
    const piece = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000, 0x20), Buffer.from('\r\n')]);
    let sent = 0;
    // 1 GiB, if it were let.
    while (!gone && sent < 2 ** 30) {
      sent += piece.length;
      if (!socket.write(piece)) await Promise.race([new Promise((go) => socket.once('drain', go)), closed]);
    }
    expect(gone).toBe(true);
    expect(sent).toBeLessThan(64 * 2 ** 20);
    expect(double.connections()).toBe(0);
  });

  it('a body that does not come', async () => {
    const proxy = await serve(await startChatDouble(replying(SAID)), { receiveMs: 100 });
    expect(await proxy.raw(head(10), '{')).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('a second request on the same connection', async () => {
    const double = await startChatDouble(replying(SAID));
    const proxy = await serve(double);
    const request = head(BODY.length) + BODY;
    const reply = await proxy.raw(request + request + request);
    expect(double.received).toHaveLength(1);
    expect(reply.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  });

  it('what would go beyond a cap', async () => {
    const double = await startChatDouble(replying(SAID));
    const meter = new Meter({ ...CAPS, tokens: 2 }, () => undefined);
    const proxy = await serve(double, { meter });
    expect(await proxy.ask(ASK)).toEqual([200, 'hello']);
    expect(await proxy.ask(ASK)).toEqual([403, 'cap_exhausted']);
    expect(double.received).toHaveLength(1);
  });

  it('a fifth request at once', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const double = await startChatDouble((response, request) => {
      void held.then(() => replying(SAID)(response, request));
    });
    const proxy = await serve(double);
    const four = [1, 2, 3, 4].map(() => proxy.ask(ASK));
    while (double.received.length < 4) await sleep(5);
    expect(await proxy.ask(ASK)).toEqual([429, 'busy']);
    release();
    expect(await Promise.all(four)).toEqual(Array(4).fill([200, 'hello']));
  });
});

const CODES: Readonly<Record<keyof typeof MISBEHAVIOURS, [number, string]>> = {
  redirect: [502, 'upstream_reply_refused'],
  'permanent redirect': [502, 'upstream_reply_refused'],
  gzip: [502, 'upstream_reply_refused'],
  '401': [502, 'upstream_error'],
  '403': [502, 'upstream_error'],
  '429': [429, 'upstream_rate_limited'],
  '500': [502, 'upstream_error'],
  '502': [502, 'upstream_error'],
  '400': [502, 'upstream_error'],
  '201': [502, 'upstream_error'],
  'a body of 2 MiB': [502, 'upstream_reply_refused'],
  'a slow head': [504, 'upstream_timeout'],
  'a slow body': [504, 'upstream_timeout'],
  'a body that breaks off': [502, 'upstream_unreachable'],
  'no reply': [502, 'upstream_unreachable'],
};

describe('an endpoint that misbehaves', () => {
  it.each(Object.entries(CODES))('%s', async (name, expected) => {
    const [behaviour] = MISBEHAVIOURS[name as keyof typeof MISBEHAVIOURS];
    const double = await startChatDouble(behaviour);
    const slow = name.startsWith('a slow');
    const upstream = { ...double, apiKey: API_KEY, connectMs: 5000, totalMs: slow ? 150 : 5000 };
    const proxy = await serve(double, { upstream });
    expect(await proxy.ask(ASK)).toEqual(expected);
    expect(double.received).toHaveLength(1);
    expect(proxy.meter.counts).toMatchObject({ requests: 1, refused: 1, completion_tokens: 0 });
  });

  it.each<[string, unknown]>([
    ['another model', completion({ model: 'vendor/other' })],
    ['no usage', completion({ usage: null })],
  ])('answers of %s', async (_, body) => {
    const proxy = await serve(await startChatDouble(replying(body)));
    expect(await proxy.ask(ASK)).toEqual([502, 'upstream_reply_refused']);
  });

  it('a gzip bomb is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20));
    const double = await startChatDouble((response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(bomb);
    });
    const proxy = await serve(double);
    expect(await proxy.ask(ASK)).toEqual([502, 'upstream_reply_refused']);
    expect(proxy.meter.counts.received_bytes).toBeLessThan(bomb.length);
  });

  it('under another CA, or another name, is not spoken to', async () => {
    const [double, stranger] = [
      await startChatDouble(replying(SAID)),
      await startChatDouble(replying(SAID), { host: 'elsewhere.invalid' }),
    ];
    const foreign = await serve({ url: double.url, caPem: stranger.caPem });
    const renamed = await serve(stranger);
    const unlisted = await serve(double, {
      upstream: { url: double.url, apiKey: API_KEY, caPem: null, connectMs: 5000, totalMs: 5000 },
    });
    for (const proxy of [foreign, renamed, unlisted])
      expect(await proxy.ask(ASK)).toEqual([502, 'upstream_unreachable']);
    expect([...double.received, ...stranger.received]).toEqual([]);
  });

  it('is let go when the agent has gone', async () => {
    const closed = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const double = await startChatDouble((response) => {
      response.once('close', () => closed.resolve());
      asked.resolve();
    });
    const proxy = await serve(double);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(head(BODY.length) + BODY);
    await asked.promise;
    socket.destroy();
    await closed.promise;
    expect(proxy.meter.counts.requests).toBe(1);
  });
});
