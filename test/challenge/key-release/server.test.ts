import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { KeyReleaseLimits } from '../../../challenge/key-release/server.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { recipientKey } from '../../../guest/wire/key-envelope.ts';
import { MAX_KEY_REQUEST_BYTES } from '../../../guest/wire/key-release.ts';
import { pemChain } from '../../../simulator/certificates.ts';
import { type KeyChallenge, keyChallenge, livePlatform } from '../../support/key-challenge.ts';
import {
  askForKeys,
  makeRequest,
  openSession,
  parseReply,
  post,
  postBytes,
  readAll,
  type Session,
} from '../../support/key-client.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RUN_TOKEN } from '../../support/valid-result.ts';

let challenge: KeyChallenge;
afterEach(() => challenge.close());

async function start(limits: Partial<KeyReleaseLimits> = {}) {
  challenge = await keyChallenge({ limits });
  const guest = await challenge.guest();
  const url = guest.plan.key_release?.url ?? '';
  const path = new URL(url).pathname;
  const open = (options: Parameters<typeof openSession>[3] = {}) =>
    openSession(url, guest.ca, guest.pair, options);
  const head = (headers: string, token = RUN_TOKEN) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`;
  const request = (session: Session) =>
    makeRequest({ ...guest, spkiDigest: guest.pair.spkiDigest }, session.exporter, recipientKey().publicHex);
  return { guest, url, path, open, head, request };
}
const code = async (reply: Promise<Buffer>) => parseReply(await reply).json.reason_code;

describe('TLS', () => {
  it('below 1.3 does not connect', async () => {
    const { open } = await start();
    await expect(open({ maxVersion: 'TLSv1.2' })).rejects.toThrow(/protocol version/);
    expect((await open()).socket.getProtocol()).toBe('TLSv1.3');
  });

  it('without a client certificate says so, and reads no body', async () => {
    const { url, path, guest } = await start();
    const session = await openSession(url, guest.ca, null);
    const reply = readAll(session.socket);
    session.socket.write(postBytes(path, RUN_TOKEN, Buffer.alloc(1000)).subarray(0, 300));
    expect(await code(reply)).toBe('client_certificate_missing');
  });

  it('does not resume: a ticket opens nothing', async () => {
    const { open, path } = await start();
    const first = await open();
    const tickets: Buffer[] = [];
    first.socket.on('session', (ticket: Buffer) => tickets.push(ticket));
    await post(first, path, RUN_TOKEN, encodeCanonical({}));
    const session = tickets.at(-1) ?? first.socket.getSession();
    expect(session).toBeDefined();
    const second = await open(session ? { session } : {});
    expect(second.socket.isSessionReused()).toBe(false);
    expect(second.exporter).not.toBe(first.exporter);
    second.socket.destroy();
  });

  it('believes clients under the KMS root alone, which is not its own CA', async () => {
    const { guest } = await start();
    const platform = await livePlatform();
    expect(await rejectionCode(keyChallenge({ platform, clientCaPem: guest.ca }))).toBe('client_ca_invalid');
    for (const clientCaPem of ['', platform.rootPem + platform.rootPem, pemChain(platform.pki.pck)]) {
      expect(await rejectionCode(keyChallenge({ platform, clientCaPem }))).toBe('client_ca_invalid');
    }
  });
});

describe('one exchange a connection', () => {
  it('a second request behind the first is not looked at', async () => {
    const { open, path, request } = await start();
    const session = await open();
    const body = request(session);
    const reply = readAll(session.socket);
    session.socket.write(Buffer.concat([postBytes(path, RUN_TOKEN, body), postBytes(path, RUN_TOKEN, body)]));
    const text = (await reply).toString('latin1');
    expect(text.match(/^HTTP\/1\.1 200 /gm)).toHaveLength(1);
    expect(text).toMatch(/^Connection: close\r$/m);
    expect(challenge.ledger.attempts('run-1')).toHaveLength(1);
  });

  it('a refused request cannot be followed by a better one', async () => {
    const { open, path, request } = await start();
    const session = await open();
    const reply = readAll(session.socket);
    const wrong = postBytes(path, 'wrong', Buffer.from('{}'));
    session.socket.write(Buffer.concat([wrong, postBytes(path, RUN_TOKEN, request(session))]));
    expect((await reply).toString('latin1')).toMatch(/^HTTP\/1\.1 401 /);
    expect(challenge.ledger.attempts('run-1')).toEqual([]);
  });
});

describe('routes', () => {
  it.each([
    ['/', 404, 'route_unknown'],
    ['/key-release/v1/runs/run-1/other', 404, 'route_unknown'],
    ['/key-release/v1/runs/%zz', 404, 'route_unknown'],
    ['/evaluation/v1/runs/run-1/result', 404, 'route_unknown'],
  ])('%s is %i', async (path, status, reason_code) => {
    const { open } = await start();
    expect(await post(await open(), path, RUN_TOKEN, Buffer.from('{}'))).toMatchObject({
      status,
      json: { released: false, reason_code },
    });
  });

  it('takes POST alone', async () => {
    const { open, path } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(await code(reply)).toBe('method_not_allowed');
  });

  it('has nothing for a run whose cache is not sealed', async () => {
    const { guest } = await start();
    const plan = challenge.prepare({ eval_run_id: 'run-2', key_release: null });
    const url = guest.plan.key_release?.url.replace('run-1', 'run-2') ?? '';
    const unsealed = { ...plan, key_release: { url, nonce: 'any' } };
    expect((await askForKeys({ ...guest, plan: unsealed })).json).toEqual({
      released: false,
      reason_code: 'key_release_not_planned',
    });
  });
});

describe('what a peer can make it hold', () => {
  it('a body announced as 1 GB is refused before a byte of it', async () => {
    const { open, head } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(head(`Content-Length: ${2 ** 30}\r\n`));
    expect(await code(reply)).toBe('request_too_large');
  });

  it('a body without a length is cut off at the cap', async () => {
    const { open, head } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(head('Transfer-Encoding: chunked\r\n'));
    const piece = Buffer.alloc(1 << 20, 0x20);
    let sent = 0;
    while (socket.writable && sent < 16 * MAX_KEY_REQUEST_BYTES) {
      const chunk = [`${piece.length.toString(16)}\r\n`, piece, '\r\n'].map((part) => Buffer.from(part));
      await new Promise<void>((resolve) => socket.write(Buffer.concat(chunk), () => resolve()));
      await new Promise<void>((resolve) => setImmediate(resolve));
      sent += piece.length;
    }
    expect(sent).toBeLessThan(16 * MAX_KEY_REQUEST_BYTES);
    socket.destroy();
    // The reply may be lost to the reset that ends the upload.
    expect((await reply).toString('latin1')).toMatch(/^$|^HTTP\/1\.1 413 /);
    expect(challenge.log).toEqual(['request_too_large']);
  });

  it('a started notice above 4 KiB is not read', async () => {
    const { open, path } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(`POST ${path}/started HTTP/1.1\r\nHost: x\r\nContent-Length: 4097\r\n\r\n`);
    expect(await code(reply)).toBe('request_too_large');
  });

  it('a body without the token is not waited for', async () => {
    const { open, head } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(head('Content-Length: 1000\r\n', 'wrong'));
    expect(await code(reply)).toBe('run_token_invalid');
  });

  it('headers beyond 16 KiB end the connection', async () => {
    const { open, head } = await start();
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(head(`X: ${'x'.repeat(20_000)}\r\n`));
    expect((await reply).toString('latin1')).toMatch(/^HTTP\/1\.1 431 /);
  });

  it('a slow body ends with its own code', async () => {
    const { open, head } = await start({ bodyMs: 200 });
    const { socket } = await open();
    const reply = readAll(socket);
    socket.write(head('Content-Length: 1000\r\n'));
    const drip = setInterval(() => socket.write(' '), 20);
    expect(await code(reply)).toBe('request_late');
    clearInterval(drip);
    expect(challenge.ledger.attempts('run-1')).toEqual([]);
  });

  it('slow headers end; without a good certificate sooner', async () => {
    const { url, guest, open } = await start({ headersMs: 600_000, strangerHeadersMs: 100 });
    const waiting = await open();
    const stranger = await openSession(url, guest.ca, null);
    const drip = setInterval(() => stranger.socket.write('X'), 20);
    await readAll(stranger.socket);
    clearInterval(drip);
    expect(waiting.socket.destroyed).toBe(false);
    await challenge.close();
    const short = await start({ headersMs: 100 });
    const { socket } = await short.open();
    socket.write('POST / HTTP/1.1\r\nHost');
    expect(await readAll(socket)).toEqual(Buffer.alloc(0));
  });

  it('a handshake that does not go on ends', async () => {
    const { url } = await start({ handshakeMs: 100 });
    const socket = connectTcp({ host: '127.0.0.1', port: Number(new URL(url).port) });
    socket.on('error', () => undefined);
    await once(socket, 'close');
  });

  it('no address holds more than its share, and others are served meanwhile', async () => {
    const { url, guest, open } = await start({ connectionsPerAddress: 4 });
    const held = await Promise.allSettled(Array.from({ length: 12 }, () => open()));
    expect(held.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
    expect((await askForKeys(guest, {}, { localAddress: '127.0.0.2' })).status).toBe(200);
    for (const one of held) if (one.status === 'fulfilled') one.value.socket.destroy();
    // Their places are free again as soon as the server has seen them go.
    for (let served = 0; served === 0; ) {
      const again = await openSession(url, guest.ca, guest.pair).catch(() => null);
      if (again) served = again.socket.destroy() ? 1 : 0;
    }
  });

  it('all together hold no more than the total, and strangers make room for guests', async () => {
    const { open, url, guest } = await start({ connections: 4, handshakeMs: 600_000 });
    const silent = Array.from({ length: 4 }, (_, i) => {
      const socket = connectTcp({
        host: '127.0.0.1',
        port: Number(new URL(url).port),
        localAddress: `127.0.1.${i + 1}`,
      });
      return socket.on('error', () => undefined);
    });
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const held: Session[] = [];
    for (let i = 0; i < 4; i++) {
      const session = await open({ localAddress: `127.0.0.${i + 2}` });
      // Its ticket comes when the server too has finished the handshake.
      await once(session.socket, 'session');
      held.push(session);
    }
    await Promise.all(silent.map((socket) => socket.closed || once(socket, 'close')));
    await expect(open({ localAddress: '127.0.0.9' })).rejects.toThrow();
    held[0]?.socket.destroy();
    for (let status = 0; status !== 200; ) {
      const asked = askForKeys(guest, {}, { localAddress: '127.0.0.9' });
      status = await asked.then((reply) => reply.status).catch(() => 0);
    }
    for (const { socket } of held) socket.destroy();
  });
});
