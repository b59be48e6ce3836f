import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Connections } from '../http/connections.ts';
import { listen } from '../http/listen.ts';
import { send } from '../http/replies.ts';
import type { RunningServer } from '../server.ts';
import type { ServerIdentity } from '../tls.ts';
import { verifyClientCa } from './client-ca.ts';
import { createKeyReleaseRoutes, type KeyReleaseRouteDeps } from './routes.ts';

/** Bounds on what a peer can hold, in milliseconds and counts. */
export interface KeyReleaseLimits {
  handshakeMs: number;
  /** From the handshake to the end of the headers: in between the guest makes a quote, up to 90 s. */
  headersMs: number;
  /** The same for a peer without a good certificate, who has nothing to wait for but the refusal. */
  strangerHeadersMs: number;
  bodyMs: number;
  /** From the headers to the last byte of the reply. */
  exchangeMs: number;
  connections: number;
  connectionsPerAddress: number;
}

export const KEY_RELEASE_LIMITS: KeyReleaseLimits = {
  handshakeMs: 10_000,
  headersMs: 100_000,
  strangerHeadersMs: 10_000,
  bodyMs: 10_000,
  exchangeMs: 60_000,
  connections: 512,
  connectionsPerAddress: 32,
};

const MAX_HEADER_BYTES = 16 * 1024;

export interface KeyReleaseServerOptions extends Omit<KeyReleaseRouteDeps, 'bodyMs'> {
  /** The server's own certificate, under the CA that plans name (`server_ca_pem`). */
  identity: ServerIdentity;
  /** The KMS root: who issues guests' certificates. Never the server's CA. */
  clientCaPem: string;
  host: string;
  /** 0: any free one. */
  port: number;
  limits: KeyReleaseLimits;
}

/** One timer a connection, for what it is waited for at the moment. */
class Deadlines {
  readonly #timers = new WeakMap<object, NodeJS.Timeout>();

  set(socket: TLSSocket, ms: number): void {
    clearTimeout(this.#timers.get(socket));
    const timer = setTimeout(() => socket.destroy(), ms);
    this.#timers.set(socket, timer);
    socket.once('close', () => clearTimeout(timer));
  }
}

/**
 * Serves key release and started notices on a port of their own: TLS 1.3 end to end (the exporter names this
 * very connection, so no proxy may stand before it), client certificates under the KMS root, no resumption,
 * one exchange a connection.
 * @throws client_ca_invalid.
 */
export async function startKeyReleaseServer(options: KeyReleaseServerOptions): Promise<RunningServer> {
  const { identity, limits, clientCaPem } = options;
  verifyClientCa(clientCaPem, identity.caPem);
  const route = createKeyReleaseRoutes({ ...options, bodyMs: limits.bodyMs });
  const deadlines = new Deadlines();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    deadlines.set(request.socket as TLSSocket, limits.exchangeMs);
    response.setHeader('Connection', 'close');
    send(response, await route(request));
  };
  const server = createServer(
    {
      cert: identity.certificatePem,
      key: identity.keyPem,
      ca: clientCaPem,
      requestCert: true,
      // Judged in verifyConnection, so that a denial has a code.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      secureOptions: constants.SSL_OP_NO_TICKET,
      handshakeTimeout: limits.handshakeMs,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => void answer(request, response),
  );
  // A peer that breaks off in a handshake is its own affair.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  const connections = new Connections({
    total: limits.connections,
    perAddress: limits.connectionsPerAddress,
  });
  server.on('secureConnection', (socket) => {
    if (socket.authorized) connections.trust(socket);
    deadlines.set(socket, socket.authorized ? limits.headersMs : limits.strangerHeadersMs);
  });
  const front = createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    if (connections.admit(socket) === 'admitted') server.emit('connection', socket);
  });
  const port = await listen(front, options.host, options.port);
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        front.close(() => resolve());
        connections.destroyAll();
      }),
  };
}
