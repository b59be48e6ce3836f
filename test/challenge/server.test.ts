import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRoutes } from '../../challenge/http/routes.ts';
import { type RunningServer, SERVER_LIMITS, type ServerLimits, startServer } from '../../challenge/server.ts';
import { issueServerIdentity } from '../../challenge/tls.ts';
import { MAX_RESULT_BYTES } from '../../guest/wire/result.ts';
import { type TestChallenge, testChallenge } from '../support/challenge-in-process.ts';
import { call, eventually } from '../support/challenge-process.ts';
import { RUN_TOKEN } from '../support/valid-result.ts';

let challenge: TestChallenge;
beforeAll(async () => {
  challenge = await testChallenge();
});
afterAll(() => challenge.close());

const port = () => Number(new URL(challenge.baseUrl).port);
async function open(options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: port(), ca: challenge.caPem, ...options });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  return socket;
}
/** Everything the server says until it closes the connection. */
async function readAll(socket: TLSSocket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString();
}
const postHead = (headers: string, token = RUN_TOKEN) =>
  `POST /evaluation/v1/runs/run-1/result HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`;

describe('TLS', () => {
  it('is 1.3 under the CA of the plan, and nothing less', async () => {
    const socket = await open();
    expect(socket.getProtocol()).toBe('TLSv1.3');
    socket.destroy();
    const old = connect({ host: '127.0.0.1', port: port(), ca: challenge.caPem, maxVersion: 'TLSv1.2' });
    const [error] = (await once(old, 'error')) as [Error];
    expect(error.message).toMatch(/protocol version|EPROTO/i);
    const stranger = connect({ host: '127.0.0.1', port: port(), ca: [] });
    const [untrusted] = (await once(stranger, 'error')) as [NodeJS.ErrnoException];
    expect(untrusted.code).toMatch(/SELF_SIGNED|UNABLE_TO/);
  });

  it('names the host it was issued for', async () => {
    for (const host of ['challenge.example', '::1']) {
      const { X509Certificate } = await import('node:crypto');
      const identity = await issueServerIdentity(host, Date.now());
      const certificate = new X509Certificate(identity.certificatePem);
      expect(host === '::1' ? certificate.checkIP(host) : certificate.checkHost(host)).toBe(host);
      expect(certificate.verify(new X509Certificate(identity.caPem).publicKey)).toBe(true);
    }
  });
});

describe('routes', () => {
  const get = (path: string, token = RUN_TOKEN) =>
    call(`${challenge.baseUrl}${path}`, { method: 'GET', token, ca: challenge.caPem });
  it('serves the agent to who has the token', async () => {
    const reply = await get('/evaluation/v1/runs/run-1/artifact');
    expect([reply.status, reply.body.toString()]).toEqual([200, 'the agent']);
    expect((await get('/evaluation/v1/runs/run-1/artifact', 'wrong')).status).toBe(401);
    expect((await get('/evaluation/v1/runs/run-1', 'wrong')).status).toBe(401);
  });
  it.each([
    ['/', 404, 'route_unknown'],
    ['/evaluation/v1/runs/run-1/other', 404, 'route_unknown'],
    ['/evaluation/v1/runs/%zz', 404, 'route_unknown'],
    ['/evaluation/v1/runs/run-1/result', 405, 'method_not_allowed'],
    ['/evaluation/v1/runs/run-1?x=1', 404, 'route_unknown'],
    [`/evaluation/v1/runs/${'x'.repeat(400)}`, 404, 'route_unknown'],
  ])('%s is %i', async (path, status, code) => {
    expect(await get(path)).toMatchObject({ status, json: { reason_code: code } });
  });
});

describe('what a peer can make it hold', () => {
  it('a body announced as 1 GB is refused before a byte of it', async () => {
    const socket = await open();
    socket.write(postHead(`Content-Length: ${2 ** 30}\r\n`));
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 413 .*result_too_large/s);
  });

  it('a body without a length is cut off at the cap', async () => {
    const socket = await open();
    const reply = readAll(socket).catch(() => '');
    socket.write(postHead('Transfer-Encoding: chunked\r\n'));
    const piece = Buffer.alloc(1 << 20, 0x20);
    let sent = 0;
    while (socket.writable && sent < 4 * MAX_RESULT_BYTES) {
      const chunk = [`${piece.length.toString(16)}\r\n`, piece, '\r\n'].map((part) => Buffer.from(part));
      await new Promise<void>((resolve) => socket.write(Buffer.concat(chunk), () => resolve()));
      await new Promise<void>((resolve) => setImmediate(resolve));
      sent += piece.length;
    }
    expect(sent).toBeLessThan(4 * MAX_RESULT_BYTES);
    socket.destroy();
    // The reply may be lost to the reset that ends the upload; when it comes it says why.
    expect(await reply).toMatch(/^$|^HTTP\/1\.1 413 /);
  });

  it('a body without the token is not read', async () => {
    const socket = await open();
    socket.write(postHead('Content-Length: 1000000\r\n', 'wrong'));
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('headers beyond 16 KiB', async () => {
    const socket = await open();
    socket.write(postHead(`X: ${'x'.repeat(20_000)}\r\n`));
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('a second body of a run is asked to come again while the first one is not all there', async () => {
    const slow = await open();
    const reply = readAll(slow);
    slow.write(postHead('Content-Length: 2\r\n'));
    slow.write('{');
    await eventually(
      async () => (await challenge.post(Buffer.from('{}'))).json.reason_code === 'server_busy',
    );
    slow.write('}');
    expect(await reply).toMatch(/schema_invalid/);
    expect((await challenge.post(Buffer.from('{}'))).json.reason_code).toBe('schema_invalid');
  });

  const serverWith = async (limits: Partial<ServerLimits>): Promise<RunningServer> =>
    startServer({
      identity: await issueServerIdentity('127.0.0.1', Date.now()),
      host: '127.0.0.1',
      port: 0,
      limits: { ...SERVER_LIMITS, ...limits },
      onDefect: () => {},
      route: createRoutes({
        ledger: challenge.ledger,
        acceptor: challenge.acceptor,
        artifact: () => Buffer.alloc(64 << 20),
        now: () => challenge.clock.nowMs,
      }),
    });

  describe('with short limits', () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await serverWith({ headersMs: 200, requestMs: 300, exchangeMs: 600 });
    });
    afterAll(() => server.close());

    it('slow headers and slow bodies end', async () => {
      const begun = await Promise.all(
        ['POST / HTTP/1.1\r\nHost', postHead('Content-Length: 100\r\n')].map(async (text) => {
          const socket = await open({ port: server.port, rejectUnauthorized: false });
          socket.write(text);
          return readAll(socket);
        }),
      );
      for (const reply of begun) expect(reply).toMatch(/^HTTP\/1\.1 (408|400) /);
    });

    it('a reply that nobody reads ends', async () => {
      const socket = await open({ port: server.port, rejectUnauthorized: false });
      socket.pause();
      socket.write(postHead('').replace('POST', 'GET').replace('/result', '/artifact'));
      // A line break before a request is none: it only finds out that nobody is there any more.
      await eventually(async () => !socket.writable || !socket.write('\r\n') || socket.destroyed);
      socket.destroy();
    });
  });

  it('no address takes more than its share of the connections, and no silent crowd all of them', async () => {
    const server = await serverWith({ connections: 4, connectionsPerAddress: 2 });
    const silent = (localAddress: string) =>
      connectTcp({ host: '127.0.0.1', port: server.port, localAddress }).on('error', () => undefined);
    const closed = (socket: Socket) => socket.closed || once(socket, 'close');
    await Promise.race([1, 2, 3].map(() => closed(silent('127.0.0.3'))));
    const crowdOf = (net: number) => Array.from({ length: 12 }, (_, i) => silent(`127.0.${net}.${i + 1}`));
    await Promise.all(crowdOf(1).map((socket) => once(socket, 'connect')));
    const guest = await open({ port: server.port, rejectUnauthorized: false });
    const reply = readAll(guest);
    guest.write(postHead('Content-Length: 2\r\nExpect: 100-continue\r\n'));
    await once(guest, 'data');
    await Promise.all(crowdOf(2).slice(0, 9).map(closed));
    guest.write('{}');
    expect(await reply).toMatch(/schema_invalid/);
    await server.close();
  });
});
