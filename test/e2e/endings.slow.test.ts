import { describe, it } from 'vitest';
import { sleepingRuns } from '../support/sleeping-run.ts';

const { expectEndsEarly } = sleepingRuns();

// The rest of endings.test.ts: other moments of a start.
describe.concurrent('a run that is ended', () => {
  it.each([50, 1200])('by SIGTERM %i ms after its guest began leaves nothing', expectEndsEarly);
});
