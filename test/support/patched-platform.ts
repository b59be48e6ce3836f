import { type EventLogEntry, replayRegister, runtimeEvent } from '../../simulator/event-log.ts';
import type { Platform } from '../../simulator/platform.ts';
import { resigned } from './evidence.ts';

/** Offsets of registers and attributes in a version 4 quote. */
const OFFSETS = {
  tdAttributes: 168,
  mrtd: 184,
  rtmr0: 376,
  rtmr1: 424,
  rtmr2: 472,
  rtmr3: 520,
  mrConfigId: 232,
} as const;

/** The same machine, booted so that its quotes show other registers; truly signed. */
export function withRegisters(
  platform: Platform,
  registers: Partial<Record<keyof typeof OFFSETS, string>>,
): Platform {
  return {
    ...platform,
    quote: (reportData, options) =>
      Object.entries(registers).reduce(
        (quote, [name, value]) =>
          resigned(platform, quote, OFFSETS[name as keyof typeof OFFSETS], Buffer.from(value, 'hex')),
        platform.quote(reportData, options),
      ),
  };
}

/** The same machine with another event log, and registers that it replays to. */
export function withLog(platform: Platform, edit: (log: EventLogEntry[]) => EventLogEntry[]): Platform {
  const eventLog = edit(platform.eventLog.map((event) => ({ ...event })));
  const registers = Object.fromEntries(
    [0, 1, 2, 3].map((imr) => [`rtmr${imr}`, replayRegister(eventLog, imr)] as const),
  );
  return { ...withRegisters(platform, registers), eventLog };
}

/** The same machine whose boot recorded other payloads under these names. */
export function withRuntimeEvents(platform: Platform, payloads: Record<string, Buffer>): Platform {
  return withLog(platform, (log) =>
    log.map((entry) => {
      const payload = payloads[entry.event];
      return payload ? runtimeEvent(entry.event, payload) : entry;
    }),
  );
}
