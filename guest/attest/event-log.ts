import { createHash } from 'node:crypto';
import { z } from 'zod';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { WireEvent } from '../wire/result.ts';
import { decodeHex } from './hex.ts';
import { isRuntimeEvent, runtimeEventDigest, verifyRuntimeEvent } from './runtime-event.ts';

export { type RuntimeClaims, readRuntimeClaims, verifyMrConfigId } from './runtime-claims.ts';
export { RUNTIME_EVENT_TYPE, runtimeEventDigest } from './runtime-event.ts';

export const MAX_EVENTS = 4096;
/** 2 MiB: of the received text, or of digests and payloads together. */
export const MAX_EVENT_LOG_BYTES = 2 * 1024 * 1024;

const DIGEST_BYTES = 48;

// Foreign members beside these are dropped, not refused: nothing signs them (spec/01).
const rawEvent = z.object({ imr: z.int().min(0).max(3), digest: z.string() });
const rawRuntimeEvent = rawEvent.extend({
  event_type: z.int(),
  event: z.string(),
  event_payload: z.string(),
});

function invalid(where: string, problem: string): EvaluatorError {
  return new EvaluatorError('event_log_invalid', `${where}: ${problem}`);
}

/** RTMR after `digests` (lower-case hex) were extended into 48 zero bytes, in order. */
export function extendRegister(digests: readonly string[]): string {
  const extend = (register: Buffer, digest: string) =>
    createHash('sha384').update(register).update(digest, 'hex').digest();
  return digests.reduce(extend, Buffer.alloc(DIGEST_BYTES)).toString('hex');
}

function checkSize(events: readonly WireEvent[]): void {
  if (events.length > MAX_EVENTS) throw invalid('event log', `more than ${MAX_EVENTS} events`);
  const sizes = events.map(
    (event) => event.digest.length + (isRuntimeEvent(event) ? event.event_payload.length : 0),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total > MAX_EVENT_LOG_BYTES) throw invalid('event log', `more than ${MAX_EVENT_LOG_BYTES} bytes`);
}

/**
 * The four registers that the log leads to, as lower-case hex. Of imr 3 every digest must be that of its
 * event's name and payload: only then does RTMR3 say anything about what the events mean.
 * @throws event_log_invalid, event_digest_mismatch.
 */
export function replay(events: readonly WireEvent[]): [string, string, string, string] {
  checkSize(events);
  for (const event of events.filter(isRuntimeEvent)) verifyRuntimeEvent(event);
  const register = (imr: number) =>
    extendRegister(events.filter((event) => event.imr === imr).map((event) => event.digest));
  return [register(0), register(1), register(2), register(3)];
}

function parseDigest(text: string, where: string): string {
  const digest = decodeHex(text, 'event_log_invalid', `${where}, digest`);
  if (digest.length !== DIGEST_BYTES) throw invalid(`${where}, digest`, `not ${DIGEST_BYTES} bytes`);
  return digest.toString('hex');
}

function parseEvent(raw: unknown, where: string): WireEvent {
  const base = rawEvent.safeParse(raw);
  if (!base.success) throw invalid(where, 'is not an event with an imr of 0..3 and a digest');
  const { imr } = base.data;
  if (imr !== 3) return { imr, digest: parseDigest(base.data.digest, where) };
  const runtime = rawRuntimeEvent.safeParse(raw);
  if (!runtime.success) throw invalid(where, 'is not a runtime event with type, name and payload');
  const { event, event_type } = runtime.data;
  const payload = decodeHex(runtime.data.event_payload, 'event_log_invalid', `${where}, payload`);
  // dstack 0.5.9 and later strip runtime digests from the log.
  const blank = runtime.data.digest === '';
  const digest = blank ? runtimeEventDigest(event, payload) : parseDigest(runtime.data.digest, where);
  const parsed: WireEvent = { imr, event_type, digest, event, event_payload: payload.toString('hex') };
  verifyRuntimeEvent(parsed);
  return parsed;
}

function readList(raw: string | readonly unknown[]): readonly unknown[] {
  const text = typeof raw === 'string' ? raw : JSON.stringify(raw);
  if (text.length > MAX_EVENT_LOG_BYTES) throw invalid('event log', `more than ${MAX_EVENT_LOG_BYTES} bytes`);
  if (typeof raw !== 'string') return raw;
  try {
    const list = parseForeignJson(Buffer.from(raw), { maxBytes: MAX_EVENT_LOG_BYTES, maxDepth: 4 });
    if (Array.isArray(list)) return list;
  } catch (cause) {
    if (!isEvaluatorError(cause)) throw cause;
    throw new EvaluatorError('event_log_invalid', `event log: ${cause.message}`, { cause });
  }
  throw invalid('event log', 'is not a list');
}

/**
 * Brings the guest agent's event log (JSON text or a list) into the form that travels: of imr 0..2 only
 * {imr, digest}; of imr 3 every field, lower-case, blank digests recomputed (spec/01, raw dstack → wire).
 * @throws event_log_invalid, event_digest_mismatch.
 */
export function parseEventLog(raw: string | readonly unknown[]): WireEvent[] {
  const list = readList(raw);
  if (list.length > MAX_EVENTS) throw invalid('event log', `more than ${MAX_EVENTS} events`);
  return list.map((entry, index) => parseEvent(entry, `event log, entry ${index}`));
}
