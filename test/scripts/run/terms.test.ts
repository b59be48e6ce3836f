import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countChosen } from '../../../scripts/run/image-terms.ts';
import { localMechanism } from '../../../scripts/run/local-mechanism.ts';
import { verifyRound } from '../../../scripts/run/terms.ts';
import { PLAIN_TASK, writeCache, writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

const SHIPPED = readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url));
const OF_TRACK = new URL('../../../task-cache', import.meta.url).pathname;

describe('a round of a track', () => {
  const round = (
    track: string,
    weight: 'ranked' | 'calibration',
    tasks: number,
    mechanism: Buffer = SHIPPED,
  ) => verifyRound({ track, weight }, mechanism, tasks);

  it('is whole where it is ranked, and may be a part elsewhere', () => {
    expect(() => round('skills', 'ranked', 50)).not.toThrow();
    expect(() => round('skills', 'calibration', 1)).not.toThrow();
    for (const tasks of [49, 51])
      expect(codeOf(() => round('skills', 'ranked', tasks))).toBe('plan_contradicts_mechanism');
    expect(codeOf(() => round('skills', 'calibration', 51))).toBe('plan_contradicts_mechanism');
  });

  it("is of any size where the mechanism leaves it to the plan, and in a desk's", () => {
    expect(() => round('terminal-bench', 'ranked', 1)).not.toThrow();
    expect(() => round('skills', 'ranked', 1, localMechanism(SHIPPED))).not.toThrow();
  });
});

describe('countChosen', () => {
  const count = (cache: string, ...tasks: string[]) => countChosen({ cache, track: 'skills', tasks });

  it('counts the tasks that were named, of a plain folder, and of a baked cache', async () => {
    expect(await count('/absent', 'a', 'b', 'a')).toBe(2);
    expect(await count(OF_TRACK)).toBe(4);
    const folder = scratchFolder();
    const skill = { ...PLAIN_TASK, 'task.toml': `track = "skills"\n${PLAIN_TASK['task.toml']}` };
    await writeCache(join(folder, 'baked'), { one: PLAIN_TASK, two: skill });
    expect(await count(join(folder, 'baked'))).toBe(1);
    await writeFiles(join(folder, 'plain/one'), PLAIN_TASK);
    expect(await count(join(folder, 'plain'))).toBe(0);
  });

  it('refuses what no bake would take', async () => {
    const folder = scratchFolder();
    expect(await rejectionCode(count(folder))).toBe('task_unknown');
    mkdirSync(join(folder, 'manifest.json'));
    expect(await rejectionCode(count(folder))).toBe('cache_unreadable');
  });
});
