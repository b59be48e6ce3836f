import { createHash } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import type { WireEvent } from '../wire/result.ts';

/** The only event type in RTMR3: a runtime event of dstack. */
export const RUNTIME_EVENT_TYPE = 0x08000001;

/** No colon: it separates name and payload in the digest, so a name with one could be read in two ways. */
const EVENT_NAME = /^[\x21-\x39\x3b-\x7e]{1,128}$/;

/** A runtime event: of RTMR3, the only register whose events have a meaning here. */
export type RuntimeEvent = Extract<WireEvent, { event: string }>;

export function isRuntimeEvent(event: WireEvent): event is RuntimeEvent {
  return event.imr === 3;
}

/** SHA-384 of u32le(type) ‖ ":" ‖ name ‖ ":" ‖ payload, as lower-case hex (spec/04). */
export function runtimeEventDigest(name: string, payload: Uint8Array): string {
  const type = Buffer.alloc(4);
  type.writeUInt32LE(RUNTIME_EVENT_TYPE);
  return createHash('sha384').update(type).update(`:${name}:`).update(payload).digest('hex');
}

/**
 * The event is of dstack's type, has an unambiguous name, and its digest is that of its name and payload.
 * @throws event_log_invalid, event_digest_mismatch.
 */
export function verifyRuntimeEvent({ event_type, event, event_payload, digest }: RuntimeEvent): void {
  const where = `event log, event ${JSON.stringify(event.slice(0, 128))}`;
  if (event_type !== RUNTIME_EVENT_TYPE) {
    throw new EvaluatorError(
      'event_log_invalid',
      `${where}: type ${event_type} is not that of runtime events`,
    );
  }
  if (!EVENT_NAME.test(event)) {
    throw new EvaluatorError('event_log_invalid', `${where}: not a name of visible ASCII without a colon`);
  }
  if (runtimeEventDigest(event, Buffer.from(event_payload, 'hex')) !== digest) {
    throw new EvaluatorError('event_digest_mismatch', `${where}: its digest is not that of its content`);
  }
}
