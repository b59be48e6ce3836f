import { createPrivateKey, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import { MAX_EVENT_LOG_BYTES } from './event-log.ts';
import { decodeHex } from './hex.ts';
import { MAX_QUOTE_BYTES } from './quote.ts';

/** What the guest agent says of its VM. Nothing here is signed: a quote is what proves it. */
export interface AgentInfo {
  appId: string;
  instanceId: string;
  /** 64 lower-case hex digits. */
  composeHash: string;
  /** Registers as 96 lower-case hex digits. */
  registers: { mrtd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string };
  /** JSON text, see `parseVmConfig`; null from agents that do not tell. */
  vmConfig: string | null;
}

export interface RawQuote {
  /** As received: zero bytes may follow the quote. */
  quote: Buffer;
  /** JSON text, see `parseEventLog`. */
  eventLog: string;
  /** JSON text, see `parseVmConfig`. */
  vmConfig: string;
}

export interface TlsKey {
  /** PKCS#8 PEM of a P-256 key. A secret. */
  privateKeyPem: string;
  /** PEM, leaf first. */
  certificateChainPem: readonly [string, ...string[]];
}

const MAX_TEXT = 64 * 1024;
/** The compose and the event log are part of it. */
const MAX_INFO_TEXT = 4 * 1024 * 1024;
const MAX_CERTIFICATE = 256 * 1024;

const hexText = (bytes: number) =>
  z
    .string()
    .regex(/^(?:0x)?(?:[0-9a-f]{2})*$/i)
    .transform((text) => text.toLowerCase().replace(/^0x/, ''))
    .refine((text) => text.length <= 2 * bytes);
const exactHex = (bytes: number) => hexText(bytes).refine((text) => text.length === 2 * bytes);

/** JSON inside of JSON: what the agent measured is a text. */
const jsonText = z
  .string()
  .max(MAX_INFO_TEXT)
  .transform((text, context) => {
    try {
      return parseForeignJson(Buffer.from(text), { maxBytes: MAX_INFO_TEXT, maxDepth: 16 });
    } catch {
      context.addIssue('is not JSON');
      return z.NEVER;
    }
  });

// Open objects: releases add members, and what is not read cannot mislead.
const infoReply = z.object({
  app_id: hexText(64),
  instance_id: hexText(64),
  compose_hash: exactHex(32),
  vm_config: z.string().max(MAX_TEXT).nullish(),
  tcb_info: jsonText.pipe(
    z.object({
      mrtd: exactHex(48),
      rtmr0: exactHex(48),
      rtmr1: exactHex(48),
      rtmr2: exactHex(48),
      rtmr3: exactHex(48),
    }),
  ),
});
const quoteReply = z.object({
  quote: z
    .string()
    .min(2)
    .max(2 + 2 * MAX_QUOTE_BYTES),
  event_log: z.string().max(MAX_EVENT_LOG_BYTES),
  vm_config: z.string().max(MAX_TEXT),
});
const tlsKeyReply = z.object({
  key: z.string().max(MAX_TEXT),
  certificate_chain: z.tuple([z.string().max(MAX_CERTIFICATE)], z.string().max(MAX_CERTIFICATE)),
});
const versionReply = z.object({ version: z.string().min(1).max(128) });

function malformed(method: string, problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('guest_agent_malformed', `guest agent, ${method}: ${problem}`, { cause });
}

function read<T>(schema: z.ZodType<T>, method: string, reply: unknown): T {
  const parsed = schema.safeParse(reply);
  if (parsed.success) return parsed.data;
  // Only where, never what: a reply may hold a private key.
  throw malformed(method, `${parsed.error.issues[0]?.path.join('.') || 'reply'} is missing or malformed`);
}

/** @throws guest_agent_malformed. */
export function readInfo(reply: unknown): AgentInfo {
  const info = read(infoReply, 'Info', reply);
  return {
    appId: info.app_id,
    instanceId: info.instance_id,
    composeHash: info.compose_hash,
    registers: info.tcb_info,
    vmConfig: info.vm_config ?? null,
  };
}

/** @throws guest_agent_malformed. */
export function readQuoteReply(reply: unknown): RawQuote {
  const { quote, event_log, vm_config } = read(quoteReply, 'GetQuote', reply);
  const bytes = decodeHex(quote, 'guest_agent_malformed', 'guest agent, GetQuote: quote');
  return { quote: bytes, eventLog: event_log, vmConfig: vm_config };
}

/** Reads a key and its chain, and that the leaf is for this P-256 key. @throws guest_agent_malformed. */
export function readTlsKey(reply: unknown): TlsKey {
  const { key, certificate_chain } = read(tlsKeyReply, 'GetTlsKey', reply);
  try {
    const [leaf] = certificate_chain.map((pem) => new X509Certificate(pem));
    const privateKey = createPrivateKey(key);
    if (privateKey.asymmetricKeyDetails?.namedCurve === 'prime256v1' && leaf?.checkPrivateKey(privateKey)) {
      return { privateKeyPem: key, certificateChainPem: certificate_chain };
    }
  } catch {
    // The cause is dropped: OpenSSL's errors are about the secret's bytes.
    throw malformed('GetTlsKey', 'its key or a certificate cannot be read');
  }
  throw malformed('GetTlsKey', 'its leaf certificate is not for its key, or the key is not P-256');
}

/** @throws guest_agent_malformed. */
export function readVersion(reply: unknown): string {
  return read(versionReply, 'Version', reply).version;
}
