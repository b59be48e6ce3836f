import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import { Connections } from './http/connections.ts';
import { listen } from './http/listen.ts';
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
  connectionsPerAddress: number;
}

export const SERVER_LIMITS: ServerLimits = {
  handshakeMs: 10_000,
  headersMs: 10_000,
  requestMs: 60_000,
  exchangeMs: 120_000,
  keepAliveMs: 5_000,
  connections: 256,
  connectionsPerAddress: 32,
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

/** Serves the challenge's routes over TLS 1.3. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { route, identity, limits, onDefect } = options;
  const connections = new Connections({
    total: limits.connections,
    perAddress: limits.connectionsPerAddress,
  });
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
      // A request without its token is refused at once, and its connection closed.
      connections.trust(request.socket);
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
  server.on('connection', (socket) => connections.admit(socket as Socket));
  // A peer that breaks off in a handshake is its own affair.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  const port = await listen(server, options.host, options.port);
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        connections.destroyAll();
      }),
  };
}
