import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Exchange, exchangeOnce } from '../../../guest/golden/session.ts';
import { goldenMachine, json, sealedPlan, testIdentity, testSteps } from '../../support/golden-guest.ts';
import { type KeyServer, serverIdentity, startKeyServer } from '../../support/key-server.ts';
import { rejectionCode } from '../../support/throws.ts';

const OK = json(200, { ok: true });

async function guestOf(server: KeyServer) {
  const { agent, platform } = await goldenMachine();
  const identity = await testIdentity(agent, sealedPlan(platform, server).plan);
  const exporters: string[] = [];
  const exchange: Exchange = {
    url: `${server.origin}/some/path`,
    identity,
    token: 'the-token',
    maxReplyBytes: 1000,
    steps: testSteps().steps,
    step: 'exchange',
    body: async (exporter) => {
      exporters.push(exporter);
      return Buffer.from('{"a":1}');
    },
  };
  return { exchange, identity, exporters };
}

describe('exchangeOnce', () => {
  it('is one mutual TLS 1.3 exchange whose exporter both ends share', async () => {
    const server = await startKeyServer(() => OK);
    const { exchange, identity, exporters } = await guestOf(server);
    expect(await exchangeOnce(exchange)).toEqual({ status: 200, body: OK.body });
    const [received] = server.received;
    expect(received).toMatchObject({
      path: '/some/path',
      authorization: 'Bearer the-token',
      body: Buffer.from('{"a":1}'),
      exporter: exporters[0],
      spki: identity.spkiDigest,
      protocol: 'TLSv1.3',
    });
    expect(exporters[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(received?.clientChain).toEqual(['cvm-evaluator-guest', 'Dstack App CA', 'Dstack KMS CA']);
  });

  it('has a connection and an exporter of its own each time', async () => {
    const server = await startKeyServer(() => OK);
    const { exchange, exporters } = await guestOf(server);
    await exchangeOnce(exchange);
    await exchangeOnce(exchange);
    expect(server.connections()).toBe(2);
    expect(exporters[0]).not.toBe(exporters[1]);
  });

  it('follows no redirect', async () => {
    const elsewhere = await startKeyServer(() => OK);
    const server = await startKeyServer(() => ({
      ...json(307, {}),
      headers: { location: `${elsewhere.origin}/x` },
    }));
    const { exchange } = await guestOf(server);
    expect((await exchangeOnce(exchange)).status).toBe(307);
    expect(elsewhere.connections()).toBe(0);
  });

  it.each([
    ['one byte above the cap', 'content-length'],
    ['a stream that never ends', 'chunked'],
  ])('stops reading at the cap: %s', async (_, kind) => {
    const server = await startKeyServer((_received, response) => {
      if (kind === 'content-length') return { status: 200, body: Buffer.alloc(1001) };
      const flood = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65536)));
      };
      response.on('drain', flood);
      flood();
      return null;
    });
    const { exchange } = await guestOf(server);
    expect(await rejectionCode(exchangeOnce(exchange))).toBe('key_reply_malformed');
  });

  it.each(['cut off', 'closed at once'])('does not take a reply that is %s', async (how) => {
    const server = await startKeyServer((_received, response) => {
      if (how === 'cut off') response.writeHead(200, { 'Content-Length': 100 }).write('{"half":');
      setTimeout(() => response.socket?.destroy(), 20);
      return null;
    });
    const { exchange } = await guestOf(server);
    expect(await rejectionCode(exchangeOnce(exchange))).toBe('key_server_unreachable');
  });

  it('sends nothing on a connection that ended while the body was made', async () => {
    const server = await startKeyServer(() => OK, {
      tls: { headersTimeout: 1, connectionsCheckingInterval: 5 },
    });
    const { exchange } = await guestOf(server);
    const late = exchangeOnce({
      ...exchange,
      body: async () => {
        await expect.poll(() => server.connections()).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, 200));
        return Buffer.from('late');
      },
    });
    expect(['key_server_unreachable', 408]).toContain(
      await late.then(
        (reply) => reply.status,
        (error) => error.code,
      ),
    );
    expect(server.received).toEqual([]);
  });
});

describe('who the server is', () => {
  it.each([
    [
      'a CA that is none',
      async () => ({
        host: '127.0.0.1',
        ca: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
      }),
    ],
    [
      'a CA that is not the plan’s',
      async () => ({ host: '127.0.0.1', ca: (await serverIdentity('localhost')).caPem }),
    ],
    [
      'another name under the plan’s CA',
      async () => ({ host: 'other.invalid', ca: (await serverIdentity('other.invalid')).caPem }),
    ],
  ])('is refused: %s', async (_, setUp) => {
    const { host, ca } = await setUp();
    const server = await startKeyServer(() => OK, { host });
    const { exchange, exporters } = await guestOf({ ...server, caPem: ca });
    expect(await rejectionCode(exchangeOnce(exchange))).toBe('key_server_untrusted');
    expect([exporters, server.received]).toEqual([[], []]);
  });

  it('is judged even where the environment says otherwise', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const server = await startKeyServer(() => OK);
    const { exchange } = await guestOf({ ...server, caPem: (await serverIdentity('localhost')).caPem });
    expect(await rejectionCode(exchangeOnce(exchange))).toBe('key_server_untrusted');
  });

  it('is never asked over TLS 1.2', async () => {
    const server = await startKeyServer(() => OK, { tls: { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } });
    const { exchange, exporters } = await guestOf(server);
    expect(await rejectionCode(exchangeOnce(exchange))).toBe('key_server_unreachable');
    expect(exporters).toEqual([]);
  });
});

describe('deadlines', () => {
  it('end a handshake that never comes', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const server = await startKeyServer(() => OK);
    const { exchange } = await guestOf(server);
    const address = silent.address() as { port: number };
    const { steps, marks } = testSteps({ connect: 50 });
    const asked = exchangeOnce({ ...exchange, url: `https://127.0.0.1:${address.port}/`, steps });
    expect(await rejectionCode(asked)).toBe('key_server_unreachable');
    expect(marks).toEqual(['connect begin']);
  });

  it('end an answer that never comes', async () => {
    const server = await startKeyServer(() => null);
    const { exchange } = await guestOf(server);
    const { steps, marks } = testSteps({ exchange: 50 });
    expect(await rejectionCode(exchangeOnce({ ...exchange, steps }))).toBe('key_server_unreachable');
    expect(marks).toEqual(['connect begin', 'connect end', 'exchange begin']);
  });

  it('are not waited for when nobody listens', async () => {
    const server = await startKeyServer(() => OK);
    const { exchange } = await guestOf(server);
    const asked = exchangeOnce({ ...exchange, url: 'https://127.0.0.1:1/' });
    expect(await rejectionCode(asked)).toBe('key_server_unreachable');
  });
});
