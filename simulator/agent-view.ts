import type { EventLogEntry } from './event-log.ts';
import { type Fault, hasFault } from './faults.ts';

/** How the guest agent writes bytes: lower-case hex, under the fault hex-prefix with 0x before it. */
export function agentHex(faults: readonly Fault[]): (value: Uint8Array | string) => string {
  const prefix = hasFault(faults, 'hex-prefix') ? '0x' : '';
  return (value) => prefix + (typeof value === 'string' ? value : Buffer.from(value).toString('hex'));
}

/** The event log as the guest agent hands it out, with the faults that it should show. */
export function agentEventLog(log: readonly EventLogEntry[], faults: readonly Fault[]): EventLogEntry[] {
  const hex = agentHex(faults);
  const blankDigests = hasFault(faults, 'blank-digests');
  const emptyNames = hasFault(faults, 'empty-names');
  return log.map((entry) => ({
    ...entry,
    digest: blankDigests && entry.imr === 3 ? '' : hex(entry.digest),
    event: emptyNames ? '' : entry.event,
    event_payload: hex(entry.event_payload),
  }));
}
