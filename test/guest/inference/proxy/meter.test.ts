import { describe, expect, it } from 'vitest';
import { type Counts, Meter } from '../../../../guest/inference/proxy/meter.ts';

const CAPS = { requests: 10, sent_bytes: 1000, received_bytes: 1000, tokens: 100 };

describe('Meter', () => {
  it('counts a request before it is sent, and tells each change', () => {
    const told: Counts[] = [];
    const meter = new Meter(CAPS, (counts) => told.push(counts));
    expect([meter.send(7), meter.send(3)]).toEqual([1, 2]);
    meter.received(5);
    meter.used({ prompt_tokens: 4, completion_tokens: 2 });
    meter.refused();
    expect(told).toHaveLength(5);
    expect(told.at(-1)).toEqual({
      requests: 2,
      refused: 1,
      sent_bytes: 10,
      received_bytes: 5,
      prompt_tokens: 4,
      completion_tokens: 2,
    });
  });

  it.each<[string, Partial<typeof CAPS>, number]>([
    ['requests', { requests: 1 }, 1],
    ['sent_bytes', { sent_bytes: 5 }, 6],
    ['received_bytes', { received_bytes: 9 }, 1],
    ['tokens', { tokens: 30 }, 1],
  ])('sends nothing beyond the cap of %s', (name, caps, bytes) => {
    const meter = new Meter({ ...CAPS, ...caps }, () => undefined);
    if (name !== 'sent_bytes') meter.send(1);
    meter.received(9);
    meter.used({ prompt_tokens: 10, completion_tokens: 20 });
    const before = meter.counts;
    expect(() => meter.send(bytes)).toThrow(expect.objectContaining({ code: 'cap_exhausted' }));
    expect(() => meter.send(bytes)).toThrow(name);
    expect(meter.counts).toEqual(before);
  });

  it('takes four at once', () => {
    const meter = new Meter(CAPS, () => undefined);
    const [leave] = [meter.enter(), meter.enter(), meter.enter(), meter.enter()];
    expect(() => meter.enter()).toThrow(expect.objectContaining({ code: 'busy' }));
    leave?.();
    expect(() => meter.enter()).not.toThrow();
  });
});
