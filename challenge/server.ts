import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { errorReply, type Reply, send } from './http/replies.ts';
import type { ServerIdentity } from './tls.ts';

/** Bounds on what a peer can hold, in milliseconds and counts. */
export interface ServerLimits {
  handshakeMs: number;
  headersMs: number;
  /** Header and body together. */
  requestMs: number;
  /** From the headers to the last byte of the reply: a peer that does not read it holds nothing for ever. */
  exchangeMs: number;
  keepAliveMs: number;
  connections: number;
}

export const SERVER_LIMITS: ServerLimits = {
  handshakeMs: 10_000,
  headersMs: 10_000,
  requestMs: 60_000,
  exchangeMs: 120_000,
  keepAliveMs: 5_000,
  connections: 128,
};

const MAX_HEADER_BYTES = 16 * 1024;

export interface ServerOptions {
  /** Answers a request, or throws the EvaluatorError that is the answer. */
  route: (request: IncomingMessage) => Promise<Reply>;
  identity: ServerIdentity;
  host: string;
  /** 0: any free one. */
  port: number;
  limits: ServerLimits;
  /** Told of errors that have no code: defects of ours. */
  onDefect: (error: unknown) => void;
}

export interface RunningServer {
  port: number;
  /** Stops listening and drops what is connected. */
  close(): Promise<void>;
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Serves the challenge's routes over TLS 1.3. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { route, identity, limits, onDefect } = options;
  const server = createServer(
    {
      cert: identity.certificatePem,
      key: identity.keyPem,
      minVersion: 'TLSv1.3',
      handshakeTimeout: limits.handshakeMs,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    async (request, response) => {
      const late = setTimeout(() => request.socket.destroy(), limits.exchangeMs);
      response.once('close', () => clearTimeout(late));
      try {
        send(response, await route(request));
      } catch (error) {
        const reply = errorReply(error);
        if (reply.status === 500) onDefect(error);
        send(response, reply);
      }
    },
  );
  server.maxConnections = limits.connections;
  // A peer that breaks off in a handshake is its own affair.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  const port = await listen(server, options.host, options.port);
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
