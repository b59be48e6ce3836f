import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { exchange, type ModelCall, type ModelFailure } from '../../../guest/net/model-exchange.ts';

/** Takes connections and says nothing on them. */
let silent: Server;
let taken: Socket[] = [];
let port = 0;
beforeEach(async () => {
  taken = [];
  silent = createServer((socket) => {
    taken.push(socket.on('error', () => undefined));
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterEach(async () => {
  for (const socket of taken) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

/** How an exchange with the silent one fails. */
async function failureOf(limits: Pick<ModelCall, 'connectMs' | 'totalMs'>, scheme: 'http' | 'https') {
  let seen: ModelFailure | null = null;
  const call: ModelCall = {
    ...limits,
    url: `${scheme}://127.0.0.1:${port}/`,
    apiKey: 'key',
    caPem: null,
    maxReplyBytes: 1,
    signal: new AbortController().signal,
    onBytes: () => undefined,
    failed: (failure) => {
      seen = failure;
      return new Error(failure.kind);
    },
  };
  await expect(exchange(Buffer.from('{}'), call)).rejects.toThrow('late');
  return seen;
}

it('gives a handshake the time to connect, and no more', async () => {
  const failure = await failureOf({ connectMs: 50, totalMs: 20_000 }, 'https');
  expect(failure).toEqual({ kind: 'late', what: 'connected', ms: 50 });
});

it('gives an answer the time of all, once connected', async () => {
  const failure = await failureOf({ connectMs: 20_000, totalMs: 50 }, 'http');
  expect(failure).toEqual({ kind: 'late', what: 'done', ms: 50 });
});

it('has a connection of its own, whatever the endpoint would keep open', async () => {
  const connections = new Set<Socket>();
  const kept = createHttpServer({ keepAlive: true }, (request, response) => {
    connections.add(request.socket);
    response.end('{}');
  });
  await new Promise<void>((resolve) => kept.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void kept.close().closeAllConnections());
  const address = kept.address();
  const call: ModelCall = {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    apiKey: 'key',
    caPem: null,
    connectMs: 20_000,
    totalMs: 20_000,
    maxReplyBytes: 1024,
    signal: new AbortController().signal,
    onBytes: () => undefined,
    failed: ({ kind }) => new Error(kind),
  };
  for (let n = 1; n <= 3; n++) {
    expect((await exchange(Buffer.from('{}'), call)).toString()).toBe('{}');
    // The last one's connection is free again, were it to be had.
    await new Promise((resolve) => setImmediate(resolve));
    expect(connections.size).toBe(n);
  }
});
