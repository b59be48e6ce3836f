import { describe, expect, it } from 'vitest';
import { parseEventLog } from '../../../guest/attest/event-log.ts';
import { parseQuote } from '../../../guest/attest/quote.ts';
import { measurementOf, verifyReplay } from '../../../guest/attest/registers.ts';
import { readRuntimeClaims } from '../../../guest/attest/runtime-claims.ts';
import { testPlatform } from '../../support/valid-result.ts';

const platform = await testPlatform();
const quote = parseQuote(platform.quote(Buffer.alloc(64), { version: 4 }));
const events = parseEventLog(platform.eventLog);
const mismatch = (register: string) =>
  expect.objectContaining({ code: 'event_log_replay_mismatch', message: expect.stringContaining(register) });

describe('verifyReplay', () => {
  it('takes the log of the quote’s own machine', () => {
    expect(() => verifyReplay(quote, events)).not.toThrow();
  });

  it.each([0, 1, 2, 3])('names register %i when an event of it is dropped', (imr) => {
    const index = events.findIndex((event) => event.imr === imr);
    expect(() => verifyReplay(quote, events.toSpliced(index, 1))).toThrow(mismatch(`rtmr${imr}`));
  });

  it.each([0, 1, 2, 3])('names register %i when an event of it is doubled', (imr) => {
    const index = events.findIndex((event) => event.imr === imr);
    const doubled = events.flatMap((event, i) => (i === index ? [event, event] : [event]));
    expect(() => verifyReplay(quote, doubled)).toThrow(mismatch(`rtmr${imr}`));
  });

  it('refuses runtime events in another order', () => {
    const first = events.findIndex((event) => event.imr === 3);
    const [a, b] = events.slice(first, first + 2);
    const swapped = a && b ? events.toSpliced(first, 2, b, a) : [];
    expect(() => verifyReplay(quote, swapped)).toThrow(mismatch('rtmr3'));
  });
});

describe('measurementOf', () => {
  it('is the machine’s published measurement', () => {
    expect(measurementOf(quote, readRuntimeClaims(events))).toEqual(platform.measurement);
  });
});
