import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  extendRegister,
  MAX_EVENT_LOG_BYTES,
  MAX_EVENTS,
  parseEventLog,
  replay,
  runtimeEventDigest,
} from '../../../guest/attest/event-log.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { eventSchema, type WireEvent } from '../../../guest/wire/result.ts';
import { testPlatform } from '../../support/valid-result.ts';

const vectors = JSON.parse(readFileSync(new URL('../../vectors/event-log.json', import.meta.url), 'utf8'));
const platform = await testPlatform();
const rawLog = platform.eventLog;
const log = JSON.stringify(rawLog);
const lastRuntime = rawLog.findIndex((event) => event.event === 'storage-fs');

const code = (name: string) => expect.objectContaining({ code: name });
const invalid = code('event_log_invalid');

/** The raw log with members of one runtime event replaced. */
function changed(members: object): unknown[] {
  return rawLog.map((event, index) => (index === lastRuntime ? { ...event, ...members } : event));
}

describe('runtimeEventDigest', () => {
  it.each(vectors.events as { event: string; event_payload: string; digest: string }[])(
    'of $event is as published',
    ({ event, event_payload, digest }) => {
      expect(runtimeEventDigest(event, Buffer.from(event_payload, 'hex'))).toBe(digest);
    },
  );

  it('extends RTMR3 as published', () => {
    const digests = (vectors.events as { digest: string }[]).slice(0, 2).map((event) => event.digest);
    expect(extendRegister(digests)).toBe(vectors.rtmr3_after_first_two);
  });
});

describe('parseEventLog', () => {
  it('takes text and list alike, and keeps of imr 0..2 only the digest', () => {
    const events = parseEventLog(log);
    expect(parseEventLog(rawLog)).toEqual(events);
    expect(events).toHaveLength(rawLog.length);
    for (const [index, event] of events.entries()) {
      const raw = rawLog[index];
      expect(event).toEqual(raw?.imr === 3 ? raw : { imr: raw?.imr, digest: raw?.digest });
      expect(eventSchema.safeParse(event).success).toBe(true);
    }
  });

  it('recomputes blank digests of runtime events', () => {
    const blank = rawLog.map((event) => (event.imr === 3 ? { ...event, digest: '' } : event));
    expect(parseEventLog(blank)).toEqual(parseEventLog(rawLog));
  });

  it('lower-cases hex and strips 0x', () => {
    const loud = rawLog.map((event) => ({
      ...event,
      digest: `0x${event.digest.toUpperCase()}`,
      event_payload: `0x${event.event_payload.toUpperCase()}`,
    }));
    expect(parseEventLog(loud)).toEqual(parseEventLog(rawLog));
  });

  it('drops foreign members', () => {
    expect(parseEventLog(changed({ version: 1 }))).toEqual(parseEventLog(rawLog));
  });

  it.each([
    ['another digest', { digest: '00'.repeat(48) }],
    ['another name', { event: 'storage-fz' }],
    ['another payload', { event_payload: '7a6673' }],
  ])('refuses %s than the digest covers', (_, members) => {
    expect(() => parseEventLog(changed(members))).toThrow(code('event_digest_mismatch'));
  });

  it.each([
    ['imr 4', changed({ imr: 4 })],
    ['imr -1', changed({ imr: -1 })],
    ['a fractional imr', changed({ imr: 2.5 })],
    ['another type', changed({ event_type: 1, digest: '' })],
    ['no type', changed({ event_type: undefined, digest: '' })],
    ['a blank name', changed({ event: '', digest: '' })],
    ['a name with a colon', changed({ event: 'storage-fs:65', digest: '' })],
    ['a name with a newline', changed({ event: 'storage-fs\n', digest: '' })],
    ['a name outside ASCII', changed({ event: 'störage-fs', digest: '' })],
    ['a name of 129 characters', changed({ event: 'x'.repeat(129), digest: '' })],
    ['half a byte of payload', changed({ event_payload: '657', digest: '' })],
    ['a payload that is not hex', changed({ event_payload: 'zz', digest: '' })],
    ['a payload with white space', changed({ event_payload: '65 8', digest: '' })],
    ['no payload', changed({ event_payload: undefined })],
    ['a digest of 32 bytes', changed({ digest: '00'.repeat(32) })],
    ['a digest that is not hex', changed({ digest: 'g'.repeat(96) })],
    ['a blank digest of imr 0', [{ imr: 0, digest: '' }]],
    ['null', [null]],
    ['a text that is not JSON', '['],
    ['a text that is not a list', '{}'],
    ['a key given twice', '[{"imr":0,"imr":1,"digest":""}]'],
    ['deep nesting', '[[[[[[]]]]]]'],
    ['too many events', Array.from({ length: MAX_EVENTS + 1 }, () => rawLog[0])],
    ['too long a text', `[${' '.repeat(MAX_EVENT_LOG_BYTES)}]`],
    ['too long a list', changed({ event_payload: '00'.repeat(MAX_EVENT_LOG_BYTES / 2), digest: '' })],
  ])('refuses %s', (_, raw) => {
    expect(() => parseEventLog(raw as string | unknown[])).toThrow(invalid);
  });

  it('throws nothing but its codes, whatever it is given', () => {
    const entry = fc.record(
      {
        imr: fc.integer({ min: -1, max: 4 }),
        digest: fc.string(),
        event: fc.string(),
        event_payload: fc.string(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.array(fc.anything()), fc.array(entry)), (raw) => {
        try {
          parseEventLog(raw);
        } catch (error) {
          expect(error).toBeInstanceOf(EvaluatorError);
        }
      }),
    );
  });
});

describe('replay', () => {
  it('leads to the registers of the machine', () => {
    const { rtmr0, rtmr1, rtmr2, rtmr3 } = platform.registers;
    expect(replay(parseEventLog(log))).toEqual([rtmr0, rtmr1, rtmr2, rtmr3]);
  });

  it('starts from 48 zero bytes and hashes register and digest', () => {
    const digest = 'ab'.repeat(48);
    const once = createHash('sha384').update(Buffer.alloc(48)).update(digest, 'hex').digest('hex');
    const zero = '00'.repeat(48);
    expect(replay([{ imr: 1, digest }])).toEqual([zero, once, zero, zero]);
  });

  it('refuses runtime events whose digest is not theirs, as a received log may have', () => {
    const events = parseEventLog(log).map((event) =>
      'event' in event ? { ...event, event_payload: `${event.event_payload}00` } : event,
    );
    expect(() => replay(events)).toThrow(code('event_digest_mismatch'));
  });

  it.each([
    ['another event type', { event_type: 4 }],
    ['an ambiguous name', { event: 'a:b' }],
  ])('refuses %s in a received log', (_, members) => {
    const event = { imr: 3, event_type: 0x08000001, event: 'a', event_payload: '', digest: '' } as const;
    expect(() => replay([{ ...event, ...members } as WireEvent])).toThrow(invalid);
  });

  it('refuses more than 4096 events or 2 MiB in a received log', () => {
    const digest = '00'.repeat(48);
    expect(() => replay(Array.from({ length: MAX_EVENTS + 1 }, () => ({ imr: 0, digest })))).toThrow(invalid);
    const event_payload = '00'.repeat(MAX_EVENT_LOG_BYTES / 2);
    expect(() => replay([{ imr: 3, event_type: 0x08000001, event: 'a', event_payload, digest }])).toThrow(
      invalid,
    );
  });
});
