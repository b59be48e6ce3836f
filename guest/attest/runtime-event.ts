import { createHash } from 'node:crypto';
import type { WireEvent } from '../wire/result.ts';

/** The only event type in RTMR3: a runtime event of dstack. */
export const RUNTIME_EVENT_TYPE = 0x08000001;

/** No colon: it separates name and payload in the digest, so a name with one could be read in two ways. */
export const EVENT_NAME = /^[\x21-\x39\x3b-\x7e]{1,128}$/;

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
