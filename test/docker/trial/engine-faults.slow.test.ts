import { afterAll, beforeAll, describe, it } from 'vitest';
import { endRuns, expectRetriedOrCharged, startRuns } from './failing-calls.ts';

beforeAll(startRuns);
afterAll(endRuns);

// The rest of engine-faults.test.ts: each call of the longest rep, and the modes that it leaves out.
describe.each([
  ['not_done', 'artifact', 'any'],
  ['answer_lost', 'restart', 'that changes something'],
  ['not_done', 'live', 'any'],
] as const)('one call %s (%s), %s', (kind, mode, which) => {
  it('never starts an agent twice, whichever call it is', () => expectRetriedOrCharged(kind, mode, which));
});
