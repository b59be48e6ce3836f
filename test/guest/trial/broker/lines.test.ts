import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../../guest/trial/broker/lines.ts';

const MAX = 16;

function split(chunks: readonly Buffer[]): (string | null)[] {
  const lines: (string | null)[] = [];
  const splitter = new LineSplitter(MAX, (line) => lines.push(line?.toString('latin1') ?? null));
  for (const chunk of chunks) splitter.write(chunk);
  return lines;
}

describe('LineSplitter', () => {
  it('gives each line once, and null for each that is too long, wherever the chunks were cut', () => {
    const text = fc.stringMatching(/^[a-z ]{0,24}$/);
    fc.assert(
      fc.property(fc.array(text, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
        const chunks = edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
        expect(split(chunks)).toEqual(lines.map((line) => (line.length > MAX ? null : line)));
      }),
    );
  });

  it('holds no more than a line, of a flood without a newline', () => {
    const before = process.memoryUsage().arrayBuffers;
    const flood = Buffer.alloc(1024 * 1024, 'x');
    const splitter = new LineSplitter(MAX, () => undefined);
    for (let i = 0; i < 64; i++) splitter.write(flood);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * flood.length);
  });

  it('says nothing of what has no end yet', () => {
    expect(split([Buffer.from('a\nb')])).toEqual(['a']);
  });
});
