import { z } from 'zod';
import { decodeCanonical } from './canonical.ts';
import { DOMAIN, reportData } from './report-data.ts';
import { eventSchema } from './result.ts';
import { hex, id, int, parseSchema, sha256, taskId } from './scalars.ts';

/** A quote and its log; nothing else in a request is large. */
export const MAX_KEY_REQUEST_BYTES = 4 * 1024 * 1024;
/** The label whose exported bytes name one TLS connection (RFC 9266). */
export const EXPORTER = { label: 'EXPORTER-Channel-Binding', length: 32 } as const;

const x25519PublicKey = sha256;
const grantId = z.string().regex(/^[0-9a-f]{32}$/, 'must be 32 lower-case hex digits');

/** What a guest asks for its tasks' keys with, on the connection that its quote names (spec/04). */
const keyRequestSchema = z.strictObject({
  schema_version: z.literal(3),
  eval_run_id: id,
  nonce: id,
  quote: hex.max(2 * 64 * 1024),
  event_log: z.array(eventSchema).max(4096),
  recipient_public_key: x25519PublicKey,
});
export type KeyRequest = z.infer<typeof keyRequestSchema>;

export const keyReplySchema = z.discriminatedUnion('released', [
  z.strictObject({
    released: z.literal(true),
    ephemeral_public_key: x25519PublicKey,
    iv: z.string().regex(/^[0-9a-f]{24}$/),
    ciphertext: hex.max(2 * 1024 * 1024),
  }),
  z.strictObject({ released: z.literal(false), reason_code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/) }),
]);
export type KeyReply = z.infer<typeof keyReplySchema>;

/** What a released reply holds once opened: the keys of the plan's tasks, in the plan's order. */
export const releasedKeysSchema = z.strictObject({
  schema_version: z.literal(1),
  grant_id: grantId,
  task_keys: z
    .array(z.strictObject({ task_id: taskId, key: sha256 }))
    .min(1)
    .max(1024),
});
export type ReleasedKeys = z.infer<typeof releasedKeysSchema>;

/** Said once, before the first agent starts: from here on this attempt is the one that counts. */
const startedSchema = z.strictObject({
  schema_version: z.literal(1),
  eval_run_id: id,
  grant_id: grantId,
  event: z.literal('started'),
});
export type Started = z.infer<typeof startedSchema>;

export const startedReceiptSchema = z.strictObject({
  schema_version: z.literal(1),
  eval_run_id: id,
  grant_id: grantId,
  event: z.literal('started'),
  received_at_ms: int,
});
export type StartedReceipt = z.infer<typeof startedReceiptSchema>;

/** Reads a request. @throws json_*, schema_invalid. */
export function parseKeyRequest(bytes: Uint8Array): KeyRequest {
  return parseSchema(keyRequestSchema, decodeCanonical(bytes, MAX_KEY_REQUEST_BYTES), 'key request');
}

/** Reads the notice that a run has started. @throws json_*, schema_invalid. */
export function parseStarted(bytes: Uint8Array): Started {
  return parseSchema(startedSchema, decodeCanonical(bytes, 4096), 'started');
}

/** What a key release quote is bound to: the run, its plan, and this very connection. */
export interface KeyReleaseBinding {
  evalRunId: string;
  nonce: string;
  planDigest: string;
  /** SHA-256 of the client certificate's SubjectPublicKeyInfo, hex. */
  spkiDigest: string;
  /** `EXPORTER` of the connection, hex. */
  tlsExporter: string;
  /** X25519, hex. */
  recipientPublicKey: string;
}

export function keyReleasePreimage(binding: KeyReleaseBinding) {
  return {
    domain: DOMAIN.keyRelease,
    schema_version: 3,
    eval_run_id: binding.evalRunId,
    key_release_nonce: binding.nonce,
    plan_digest: binding.planDigest,
    ra_tls_spki_digest: binding.spkiDigest,
    recipient_public_key: binding.recipientPublicKey,
    tls_exporter: binding.tlsExporter,
  };
}

/** Report data of the key release domain, version 3: the only one that is ever accepted (spec/01). */
export function keyReleaseReportData(binding: KeyReleaseBinding): Buffer {
  return reportData(keyReleasePreimage(binding));
}
