import { join } from 'node:path';
import { beforeAll, describe, it } from 'vitest';
import { scratchFolder } from '../support/scratch.ts';
import { removeTaskImages } from '../support/task-images.ts';
import { AGENTS, bakeWordTally, expectSolved } from '../support/word-tally.ts';

const folder = scratchFolder();
const cache = join(folder, 'cache');

removeTaskImages(['word-tally']);
beforeAll(() => bakeWordTally(cache), 300_000);

// The rest of brokered.test.ts: each way in which agents of Harbor use its interface.
describe("an agent.py written against Harbor's interface, as it is", () => {
  it.each(['shell-commands', 'upload-download'])('%s solves a task', (name) =>
    expectSolved(cache, join(AGENTS, name), join(folder, name)),
  );
});
