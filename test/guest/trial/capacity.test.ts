import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Capacity, type Need, type Release } from '../../../guest/trial/capacity.ts';

const NOTHING: Need = { cpus: 0, memoryBytes: 0, diskBytes: 0, slots: 0 };
const need = (some: Partial<Need>): Need => ({ ...NOTHING, slots: 1, ...some });
const TOTAL: Need = { cpus: 4, memoryBytes: 100, diskBytes: 100, slots: 8 };

/** Asks for a need and tells when it was granted. */
function ask(capacity: Capacity, wanted: Need, order: number) {
  const asked: { release: Release | null } = { release: null };
  void capacity.acquire(wanted, order).then((release) => {
    asked.release = release;
  });
  return asked;
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Capacity', () => {
  it('names what can never fit', () => {
    const GIB = 2 ** 30;
    const capacity = new Capacity({ cpus: 4, memoryBytes: GIB, diskBytes: 2 * GIB, slots: 8 });
    expect(capacity.neverFits(need({ cpus: 4, memoryBytes: GIB }))).toBeNull();
    expect(capacity.neverFits(need({ cpus: 4.5 }))).toBe('4.5 CPUs, and this machine has 4');
    expect(capacity.neverFits(need({ memoryBytes: 2 * GIB }))).toBe(
      '2048 MiB of memory, and this machine has 1024 MiB beside its reserve',
    );
    expect(capacity.neverFits(need({ diskBytes: 3 * GIB }))).toBe(
      '3072 MiB of disk, and this machine has 2048 MiB free beside its reserve',
    );
    expect(capacity.neverFits(need({ slots: 9 }))).toBe('9 places, and there are 8');
  });

  it('lets a small rep pass a large one that does not fit yet', async () => {
    const capacity = new Capacity(TOTAL);
    const first = ask(capacity, need({ cpus: 2 }), 0);
    const large = ask(capacity, need({ cpus: 4 }), 1);
    const small = ask(capacity, need({ cpus: 1 }), 2);
    await settle();
    expect([first, large, small].map(({ release }) => release !== null)).toEqual([true, false, true]);
    first.release?.();
    small.release?.();
    await settle();
    expect(large.release).not.toBeNull();
  });

  it('looks at a lower order first, and in turn at equal ones', async () => {
    const capacity = new Capacity({ ...TOTAL, slots: 1 });
    const first = ask(capacity, need({}), 5);
    const [late, early, alsoEarly] = [
      ask(capacity, need({}), 9),
      ask(capacity, need({}), 1),
      ask(capacity, need({}), 1),
    ];
    await settle();
    first.release?.();
    await settle();
    expect([late, early, alsoEarly].map(({ release }) => release !== null)).toEqual([false, true, false]);
    early.release?.();
    await settle();
    expect([late, alsoEarly].map(({ release }) => release !== null)).toEqual([false, true]);
  });

  it('takes a second release for nothing', async () => {
    const capacity = new Capacity({ ...TOTAL, slots: 1 });
    const first = ask(capacity, need({}), 0);
    await settle();
    first.release?.();
    first.release?.();
    const [second, third] = [ask(capacity, need({}), 1), ask(capacity, need({}), 2)];
    await settle();
    expect([second, third].map(({ release }) => release !== null)).toEqual([true, false]);
  });

  it('never grants more than there is, and grants everything in the end', async () => {
    const needs = fc.array(
      fc.record({
        cpus: fc.integer({ min: 0, max: 4 }),
        memoryBytes: fc.integer({ min: 0, max: 100 }),
        diskBytes: fc.integer({ min: 0, max: 100 }),
        slots: fc.integer({ min: 0, max: 8 }),
      }),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(needs, async (wanted) => {
        const capacity = new Capacity(TOTAL);
        const used = { ...NOTHING };
        let granted = 0;
        await Promise.all(
          wanted.map(async (one, order) => {
            const release = await capacity.acquire(one, order);
            granted++;
            for (const key of Object.keys(used) as (keyof Need)[]) {
              used[key] += one[key];
              expect(used[key]).toBeLessThanOrEqual(TOTAL[key]);
            }
            await settle();
            for (const key of Object.keys(used) as (keyof Need)[]) used[key] -= one[key];
            release();
          }),
        );
        expect(granted).toBe(wanted.length);
      }),
      { numRuns: 50 },
    );
  });
});

describe('CPUs that can be spared', () => {
  const one = (cpus: number) => ({ cpus, memoryBytes: 1, diskBytes: 1, slots: 1, sparableCpus: 0.5 });
  const whole = { cpus: 4, memoryBytes: 100, diskBytes: 100, slots: 100 };

  it('are reserved beside the others', async () => {
    const capacity = new Capacity(whole);
    const releases = [await capacity.acquire(one(1), 0), await capacity.acquire(one(1.5), 1)];
    let third = false;
    const waiting = capacity.acquire(one(0.5), 2).then(() => {
      third = true;
    });
    await Promise.resolve();
    expect(third).toBe(false);
    releases[0]?.();
    await waiting;
  });

  it('keep nothing from running that has the whole machine, and what they took is given back', async () => {
    const capacity = new Capacity(whole);
    expect(capacity.neverFits(one(4))).toBeNull();
    for (let i = 0; i < 3; i++) (await capacity.acquire(one(4), i))();
    (await capacity.acquire({ ...whole, slots: 1 }, 4))();
  });
});
