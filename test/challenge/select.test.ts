import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectionSeed, selectTasks } from '../../challenge/select.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { codeOf } from '../support/throws.ts';

const subject = { hotkey: 'hotkey', agentHash: 'agent', cacheId: 'cache', mechanismDigest: 'mechanism' };
const secret = Buffer.alloc(32, 1);
const tasks = Array.from({ length: 20 }, (_, index) => ({
  task_id: `task-${String(index).padStart(2, '0')}`,
}));

describe('a draw', () => {
  it('has a seed of its subject and epoch alone', () => {
    const seed = selectionSeed(secret, subject);
    expect(seed).toMatch(/^[0-9a-f]{64}$/);
    expect(selectionSeed(secret, { ...subject })).toBe(seed);
    for (const key of Object.keys(subject)) {
      expect(selectionSeed(secret, { ...subject, [key]: 'other' })).not.toBe(seed);
    }
    expect(selectionSeed(Buffer.alloc(32, 2), subject)).not.toBe(seed);
  });

  it('takes the first n by sha256(seed ":" id), ascending by id', () => {
    const seed = selectionSeed(secret, subject);
    const byRank = tasks.map((task) => task.task_id).sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
    function rank(id: string): string {
      return sha256Hex(`${seed}:${id}`);
    }
    expect(selectTasks(tasks, seed, 5).map((task) => task.task_id)).toEqual(byRank.slice(0, 5).sort());
    expect(selectTasks(tasks, seed, 20)).toEqual(tasks);
  });

  it('does not depend on the order of the cache, and a larger draw holds the smaller one', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray(tasks, { minLength: 20 }),
        fc.integer({ min: 1, max: 19 }),
        (shuffled, n) => {
          const drawn = selectTasks(shuffled, 'seed', n);
          expect(drawn).toEqual(selectTasks(tasks, 'seed', n));
          expect(selectTasks(tasks, 'seed', n + 1)).toEqual(expect.arrayContaining(drawn));
        },
      ),
    );
  });

  it('of more tasks than there are is refused', () => {
    expect(codeOf(() => selectTasks(tasks, 'seed', 21))).toBe('selection_impossible');
  });
});
