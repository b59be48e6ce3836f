import { afterEach, expect, it, vi } from 'vitest';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { startUpkeep } from '../../challenge/upkeep.ts';

afterEach(() => vi.useRealTimers());

it('goes on after a failure, which it tells of', () => {
  vi.useFakeTimers();
  const ledger = new SqliteLedger(':memory:');
  const log: unknown[] = [];
  const end = startUpkeep(
    () => ledger.closeOverdue(1, 1),
    (event) => log.push(event),
  );
  vi.advanceTimersByTime(30_000);
  expect(log).toEqual([]);
  ledger.close();
  vi.advanceTimersByTime(60_000);
  const failed = { event: 'upkeep_failed', detail: expect.stringMatching(/not open/) };
  expect(log).toEqual([failed, failed]);
  end();
  vi.advanceTimersByTime(60_000);
  expect(log).toHaveLength(2);
});
