import { beforeAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { oraclePackage } from '../../../scripts/agent/oracle-package.ts';
import { writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

const folder = scratchFolder();
const task = (taskId: string, text: string) => ({ taskId, instruction: Buffer.from(text) });

beforeAll(async () => {
  await writeFiles(folder, {
    'one/solution/solve.sh': 'echo 1\n',
    'one/solution/data/input': 'x',
    'two/solution/solve.sh': 'echo 2\n',
  });
});

describe('the oracle of an image', () => {
  it('has each solution below the digest of its task’s instruction', async () => {
    const { manifest, files } = await oraclePackage(folder, [task('one', 'Do one.'), task('two', 'Do two.')]);
    const below = (text: string) => `solutions/${sha256Hex(text)}`;
    expect(
      files
        .map(({ path }) => path)
        .filter((path) => path.startsWith('solutions/'))
        .sort(),
    ).toEqual(
      [
        `${below('Do one.')}/data/input`,
        `${below('Do one.')}/solve.sh`,
        `${below('Do two.')}/solve.sh`,
      ].sort(),
    );
    expect(manifest).toMatchObject({ kind: 'container', env: [] });
    expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(['find.sh', 'run.sh']));
  });

  it('is one package for the same tasks', async () => {
    const tasks = [task('one', 'Do one.')];
    const [first, second] = [await oraclePackage(folder, tasks), await oraclePackage(folder, tasks)];
    expect(first.agentHash).toBe(second.agentHash);
  });

  it('does not guess between two tasks with one instruction', async () => {
    const same = oraclePackage(folder, [task('one', 'Do it.'), task('two', 'Do it.')]);
    expect(await rejectionCode(same)).toBe('usage');
  });
});
