import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { parseEventLog } from '../../guest/attest/event-log.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { openKeys, recipientKey } from '../../guest/wire/key-envelope.ts';
import {
  EXPORTER,
  type KeyReleaseBinding,
  type KeyReply,
  type KeyRequest,
  keyReleaseReportData,
  type ReleasedKeys,
} from '../../guest/wire/key-release.ts';
import { type EvalPlan, planDigest } from '../../guest/wire/plan.ts';
import type { Platform } from '../../simulator/platform.ts';
import type { CertForm, RaTlsEvidence } from '../../simulator/ra-tls.ts';
import { createKmsChain, issueTlsKey, type KmsChain, type TlsKeyArguments } from '../../simulator/tls-key.ts';
import { X509Certificate } from '../../simulator/x509.ts';

/** A client key with its certificate, as a guest has it, or as a forger would. */
export interface KeyPair {
  key: string;
  /** PEM, leaf first. */
  cert: string;
  /** SHA-256 of the leaf's SubjectPublicKeyInfo, hex. */
  spkiDigest: string;
}

export interface KeyPairOptions {
  form: CertForm;
  /** Who issues; by default the platform's own KMS. */
  chain: KmsChain;
  appId: Buffer;
  nowMs: number;
  args: Partial<TlsKeyArguments>;
  /** What the certificate carries about this key. */
  evidence: (reportData: Buffer) => RaTlsEvidence;
}

export function evidenceFrom(platform: Platform) {
  return (reportData: Buffer): RaTlsEvidence => ({
    quote: platform.quote(reportData, { version: 4 }),
    eventLog: platform.eventLog,
    reportData,
    vmConfig: '{}',
  });
}

/** A key pair for the plan's window, as the guest agent of `platform` gives it. */
export async function keyPair(
  platform: Platform,
  plan: Pick<EvalPlan, 'issued_at_ms' | 'expires_at_ms'>,
  options: Partial<KeyPairOptions> = {},
): Promise<KeyPair> {
  const issued = await issueTlsKey(
    {
      subject: 'guest',
      alt_names: [],
      usage_ra_tls: true,
      usage_server_auth: false,
      usage_client_auth: true,
      not_before: Math.floor(plan.issued_at_ms / 1000),
      not_after: Math.floor(plan.expires_at_ms / 1000),
      ...options.args,
    },
    {
      chain: options.chain ?? (await createKmsChain(platform)),
      appId: options.appId ?? platform.appId,
      certForm: options.form ?? 'versioned',
      nowMs: options.nowMs ?? platform.nowMs,
      evidence: options.evidence ?? evidenceFrom(platform),
    },
  );
  const [leaf] = issued.certificate_chain;
  const spki = Buffer.from(new X509Certificate(leaf).publicKey.rawData);
  return { key: issued.key, cert: issued.certificate_chain.join(''), spkiDigest: sha256Hex(spki) };
}

/** With `localAddress` a peer of its own on loopback. */
export type SessionOptions = ConnectionOptions & Pick<TcpNetConnectOpts, 'localAddress'>;

export interface Session {
  socket: TLSSocket;
  /** Hex. */
  exporter: string;
}

/** A connection to `url` that trusts `ca` alone. Rejects when the handshake fails. */
export async function openSession(
  url: string,
  ca: string,
  pair: Pick<KeyPair, 'key' | 'cert'> | null,
  options: SessionOptions = {},
): Promise<Session> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca, ...pair, ...options });
  const failed = new Promise<never>((_, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
  failed.catch(() => undefined);
  await Promise.race([once(socket, 'secureConnect'), failed]);
  socket.on('error', () => undefined);
  const exporter = socket.exportKeyingMaterial(EXPORTER.length, EXPORTER.label, Buffer.alloc(0));
  return { socket, exporter: exporter.toString('hex') };
}

export interface Reply {
  status: number;
  json: Record<string, unknown>;
  body: Buffer;
}

/** The bytes of one POST, for tests that send them in another way. */
export function postBytes(path: string, token: string, body: Buffer): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: challenge',
    `Authorization: Bearer ${token}`,
    `Content-Length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}

/** Everything that comes until the connection closes. */
export async function readAll(socket: TLSSocket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!socket.closed) await once(socket, 'close');
  return Buffer.concat(chunks);
}

export function parseReply(bytes: Buffer): Reply {
  const end = bytes.indexOf('\r\n\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1', 0, 16))?.[1] ?? 0);
  const body = bytes.subarray(end + 4);
  return { status, body, json: end < 0 ? {} : (JSON.parse(body.toString()) as Record<string, unknown>) };
}

/** One POST on a session, and what came back until the server closed. */
export async function post({ socket }: Session, path: string, token: string, body: Buffer): Promise<Reply> {
  const reply = readAll(socket);
  socket.write(postBytes(path, token, body));
  return parseReply(await reply);
}

/** What a request is made of; a test changes one part of it. */
export interface RequestParts {
  platform: Platform;
  plan: EvalPlan;
  binding: KeyReleaseBinding;
  reportData: Buffer;
  quote: Buffer;
  request: KeyRequest;
}

export interface Changes {
  /** Into the quote's preimage only. */
  binding?: Partial<KeyReleaseBinding>;
  reportData?: Buffer;
  quote?: Buffer;
  /** Into the document only. */
  request?: Partial<KeyRequest> & Record<string, unknown>;
}

/** A request as an honest guest makes it on this connection, but for `changes`. */
export function makeRequest(
  { platform, plan, spkiDigest }: { platform: Platform; plan: EvalPlan; spkiDigest: string },
  exporter: string,
  recipientPublicKey: string,
  changes: Changes = {},
): Buffer {
  const nonce = plan.key_release?.nonce ?? '';
  const binding: KeyReleaseBinding = {
    evalRunId: plan.eval_run_id,
    nonce,
    planDigest: planDigest(plan),
    spkiDigest,
    tlsExporter: exporter,
    recipientPublicKey,
    ...changes.binding,
  };
  const reportData = changes.reportData ?? keyReleaseReportData(binding);
  const quote = changes.quote ?? platform.quote(reportData, { version: 4 });
  return encodeCanonical({
    schema_version: 3,
    eval_run_id: plan.eval_run_id,
    nonce,
    quote: quote.toString('hex'),
    event_log: parseEventLog(platform.eventLog),
    recipient_public_key: recipientPublicKey,
    ...changes.request,
  });
}

export interface Guest {
  platform: Platform;
  plan: EvalPlan;
  pair: KeyPair;
  ca: string;
  token: string;
}

/** The whole first exchange; `keys` when they were released and opened. */
export async function askForKeys(
  guest: Guest,
  changes: Changes = {},
  options: SessionOptions = {},
): Promise<Reply & { keys: ReleasedKeys | null }> {
  const { plan, pair, ca, token } = guest;
  const url = plan.key_release?.url ?? '';
  const session = await openSession(url, ca, pair, options);
  const recipient = recipientKey();
  const body = makeRequest(
    { ...guest, spkiDigest: pair.spkiDigest },
    session.exporter,
    recipient.publicHex,
    changes,
  );
  const reply = await post(session, new URL(url).pathname, token, body);
  const document = reply.json as KeyReply;
  if (document.released !== true) return { ...reply, keys: null };
  const context = {
    eval_run_id: plan.eval_run_id,
    nonce: plan.key_release?.nonce ?? '',
    spki: pair.spkiDigest,
  };
  return { ...reply, keys: openKeys(document, recipient.privateKey, context) };
}

/** The second exchange. */
export async function sayStarted(
  { plan, pair, ca, token }: Omit<Guest, 'platform'>,
  grantId: string,
  changes: Record<string, unknown> = {},
): Promise<Reply> {
  const url = plan.key_release?.url ?? '';
  const session = await openSession(url, ca, pair);
  const notice = { schema_version: 1, eval_run_id: plan.eval_run_id, grant_id: grantId, event: 'started' };
  const path = `${new URL(url).pathname}/started`;
  return post(session, path, token, encodeCanonical({ ...notice, ...changes }));
}

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');
