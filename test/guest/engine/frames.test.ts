import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedCapture, FrameReader } from '../../../guest/engine/frames.ts';

function frame(stream: number, payload: Buffer, declared = payload.length): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(declared, 4);
  return Buffer.concat([header, payload]);
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const edges = [0, ...at.map((edge) => edge % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
}

describe('BoundedCapture', () => {
  it('keeps the first and the last bytes, without overlap, and counts all, however they come', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 32 }),
        (pieces, limit) => {
          const capture = new BoundedCapture(limit);
          for (const piece of pieces) capture.write(Buffer.from(piece));
          const all = Buffer.concat(pieces);
          const afterHead = all.subarray(limit);
          const { head, tail, totalBytes } = capture.captured();
          expect(head).toEqual(all.subarray(0, limit));
          expect(tail).toEqual(afterHead.subarray(Math.max(0, afterHead.length - limit)));
          expect(totalBytes).toBe(all.length);
        },
      ),
    );
  });
});

describe('FrameReader', () => {
  it('gives the same for every way to cut the stream into chunks', () => {
    const frames = fc.array(fc.tuple(fc.constantFrom(1, 2), fc.uint8Array({ maxLength: 30 })), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 30 }), (list, edges) => {
        const wire = Buffer.concat(list.map(([stream, payload]) => frame(stream, Buffer.from(payload))));
        const reader = new FrameReader(1024);
        for (const chunk of cut(wire, edges)) reader.write(chunk);
        const of = (wanted: number) =>
          Buffer.concat(list.filter(([stream]) => stream === wanted).map(([, payload]) => payload));
        expect(reader.captured().stdout.head).toEqual(of(1));
        expect(reader.captured().stderr.head).toEqual(of(2));
      }),
    );
  });

  it('reads a chunk of 50 000 one-byte frames', () => {
    const reader = new FrameReader(16);
    reader.write(Buffer.concat(Array.from({ length: 50_000 }, () => frame(1, Buffer.from('x')))));
    expect(reader.captured().stdout.totalBytes).toBe(50_000);
  });

  it('counts what came of a frame that the end of the stream tore off', () => {
    const reader = new FrameReader(16);
    reader.write(frame(1, Buffer.from('whole')));
    reader.write(frame(2, Buffer.from('to'), 1000));
    expect(reader.captured().stdout.head.toString()).toBe('whole');
    expect(reader.captured().stderr).toMatchObject({ totalBytes: 2 });
  });

  it.each([
    ['an unknown stream', Buffer.from([4, 0, 0, 0, 0, 0, 0, 1])],
    ['text, as from a Tty', Buffer.from('hello wo')],
    ['bytes where zeros belong', Buffer.from([1, 0, 1, 0, 0, 0, 0, 1])],
  ])('refuses %s as a header', (_, header) => {
    expect(() => new FrameReader(16).write(header)).toThrow(
      expect.objectContaining({ code: 'engine_error' }),
    );
  });
});
