import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import { issueServerIdentity, type ServerIdentity } from '../../challenge/tls.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { EXPORTER } from '../../guest/wire/key-release.ts';

/** What one request was, and on which connection it came. */
export interface Received {
  path: string;
  authorization: string;
  body: Buffer;
  /** Hex, as the server's end exports it. */
  exporter: string;
  /** SHA-256 of the client certificate's SubjectPublicKeyInfo, hex. */
  spki: string;
  /** Common names, leaf first. */
  clientChain: readonly string[];
  protocol: string | null;
}

export interface Answer {
  status: number;
  body: Buffer;
  headers?: Record<string, string>;
}

export interface KeyServer {
  /** Without a path. */
  origin: string;
  caPem: string;
  received: Received[];
  connections(): number;
}

const identities = new Map<string, Promise<ServerIdentity>>();

/** A server certificate for a host, judged by the real clock. */
export function serverIdentity(host: string): Promise<ServerIdentity> {
  const known = identities.get(host) ?? issueServerIdentity(host, Date.now());
  identities.set(host, known);
  return known;
}

function peerChain(socket: TLSSocket): string[] {
  const subjects: string[] = [];
  let current = socket.getPeerCertificate(true);
  while (current?.raw) {
    subjects.push(String(current.subject.CN));
    if (current.issuerCertificate === current) break;
    current = current.issuerCertificate;
  }
  return subjects;
}

async function receive(request: IncomingMessage): Promise<Received> {
  const socket = request.socket as TLSSocket;
  // Not made from the raw bytes: Node would find the PEM inside the leaf's quote first.
  const leaf = socket.getPeerX509Certificate();
  const body = await buffer(request);
  return {
    path: request.url ?? '',
    authorization: request.headers.authorization ?? '',
    body,
    exporter: socket.exportKeyingMaterial(EXPORTER.length, EXPORTER.label, Buffer.alloc(0)).toString('hex'),
    spki: sha256Hex(leaf?.publicKey.export({ format: 'der', type: 'spki' }) ?? ''),
    clientChain: peerChain(socket),
    protocol: socket.getProtocol(),
  };
}

/**
 * A mutual TLS server of the test's own on loopback, gone when the test is. `answer` returning null leaves the
 * request without an answer; it may also use the response itself.
 */
export async function startKeyServer(
  answer: (received: Received, response: ServerResponse) => Promise<Answer | null> | Answer | null,
  options: { host?: string; tls?: ServerOptions } = {},
): Promise<KeyServer> {
  const identity = await serverIdentity(options.host ?? '127.0.0.1');
  const received: Received[] = [];
  let connections = 0;
  const server = createServer(
    {
      cert: identity.certificatePem,
      key: identity.keyPem,
      minVersion: 'TLSv1.3',
      requestCert: true,
      rejectUnauthorized: false,
      ...options.tls,
    },
    async (request, response) => {
      const one = await receive(request);
      received.push(one);
      const given = await answer(one, response);
      if (given === null) return;
      response.writeHead(given.status, { 'Content-Length': given.body.length, ...given.headers });
      response.end(given.body);
    },
  );
  server.on('secureConnection', () => connections++);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  return {
    origin: `https://127.0.0.1:${port}`,
    caPem: identity.caPem,
    received,
    connections: () => connections,
  };
}
