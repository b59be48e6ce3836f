import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maximumMatching } from '../../../../guest/tracks/repositories/matching.ts';

type Graph = readonly (readonly boolean[])[];

/** Every way of giving left ones a partner, or none. */
function bestByTrying(graph: Graph, from = 0, taken: ReadonlySet<number> = new Set()): number {
  const row = graph[from];
  if (row === undefined) return 0;
  const without = bestByTrying(graph, from + 1, taken);
  const withOne = row.map((fits, r) =>
    fits && !taken.has(r) ? 1 + bestByTrying(graph, from + 1, new Set([...taken, r])) : 0,
  );
  return Math.max(without, ...withOne);
}

const sizeOf = (graph: Graph, right: number) =>
  maximumMatching(graph.length, right, (l, r) => graph[l]?.[r] ?? false);

describe('maximumMatching', () => {
  it('finds what a greedy pairing loses', () => {
    // Planted 18 and 25, reported 22 and 14: 22 fits both, 14 fits 18 alone.
    const planted = [18, 25];
    const reported = [22, 14];
    const near = (l: number, r: number) => Math.abs((planted[l] ?? 0) - (reported[r] ?? 0)) <= 10;
    expect(maximumMatching(2, 2, near)).toBe(2);
  });

  it('is as large as the best of all pairings', () => {
    const graphs = fc.record({ left: fc.nat(5), right: fc.nat(7) }).chain(({ left, right }) =>
      fc
        .array(fc.array(fc.boolean(), { minLength: right, maxLength: right }), {
          minLength: left,
          maxLength: left,
        })
        .map((graph) => ({ graph, right })),
    );
    fc.assert(
      fc.property(graphs, ({ graph, right }) => {
        expect(sizeOf(graph, right)).toBe(bestByTrying(graph));
      }),
      { numRuns: 500 },
    );
  });

  it('is bounded: a planted one is compared until it has as many partners as there are planted ones', () => {
    let looks = 0;
    const size = maximumMatching(256, 10_000, () => {
      looks += 1;
      return true;
    });
    expect([size, looks]).toEqual([256, 256 * 256]);
  });
});
