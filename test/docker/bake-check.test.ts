import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCache } from '../../guest/tasks/cache.ts';
import { type BakeCheck, type BakeOptions, bakeTasks } from '../../scripts/tasks/bake.ts';
import type { TaskCheck } from '../../scripts/tasks/check-task.ts';
import { taskImageName } from '../../scripts/tasks/task-image.ts';
import { buildBaseToolchain } from '../../scripts/toolchain/build.ts';
import { type Files, writeFiles } from '../support/plain-task.ts';
import { scratchFolder } from '../support/scratch.ts';
import { GOLDEN_KEY } from '../support/sealed-cache.ts';
import { rejectionCode } from '../support/throws.ts';
import { ENGINE_SOCKET, ensureTestImage } from './fixtures.ts';

const OWN_TASKS = join(import.meta.dirname, '../../task-cache');
const built = new Set<string>();

beforeAll(async () => {
  await ensureTestImage();
});
afterAll(() => {
  for (const image of built) execFileSync('docker', ['rmi', '-f', image], { stdio: 'ignore' });
});

const SHELL = '#!/opt/evaluator/busybox sh';
/** A task in an image of nothing but a shell, whose solution is one line and whose test is another. */
const task = (solution: string, test: string, more: Files = {}): Files => ({
  'task.toml':
    '[agent]\ntimeout_sec = 30.0\n[environment]\nmemory_mb = 128\nstorage_mb = 64\nallow_internet = false\n',
  'instruction.md': 'Answer.\n',
  'environment/Dockerfile': `FROM cvm-evaluator-test/busybox:1\nCOPY run.txt /\n`,
  'environment/run.txt': `${process.pid} ${Math.random()}\n`,
  'solution/solve.sh': `${SHELL}\n${solution}\n`,
  'tests/test.sh': `${SHELL}\nif ${test}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`,
  ...more,
});

interface Run {
  cache: string;
  options: BakeOptions;
  checks: TaskCheck[];
  unbuilt: string[];
}

async function prepare(
  from: string | Readonly<Record<string, Files>>,
  check: Partial<BakeCheck>,
): Promise<Run> {
  const folder = scratchFolder();
  if (typeof from !== 'string')
    for (const [name, files] of Object.entries(from)) await writeFiles(join(folder, 'plain', name), files);
  const run: Omit<Run, 'options'> = { cache: join(folder, 'cache'), checks: [], unbuilt: [] };
  const options: BakeOptions = {
    from: [typeof from === 'string' ? from : join(folder, 'plain')],
    out: run.cache,
    only: [],
    track: 'terminal-bench',
    live: [],
    seal: { goldenKey: GOLDEN_KEY, random: randomBytes },
    engineSocket: ENGINE_SOCKET,
    toolchain: buildBaseToolchain,
    check: {
      reps: 1,
      failing: 'refuse',
      logs: null,
      onChecked: (found) => {
        run.checks.push(...found.checks);
        run.unbuilt.push(...found.unbuilt.map(({ code }) => code));
        for (const { taskId, image } of found.checks) built.add(taskImageName(taskId, image));
      },
      ...check,
    },
    signal: new AbortController().signal,
    onProgress: () => {},
  };
  return Object.assign(run, { options });
}

const verdicts = ({ checks }: Run) =>
  checks.map(({ taskId, verdict, mode, reason }) => [taskId, verdict, mode ?? reason]);

describe('bake --check', () => {
  it("passes this repository's own tasks, and writes mode and count into the manifest", async () => {
    const run = await prepare(OWN_TASKS, {});
    await bakeTasks(run.options);
    const cache = await openCache(run.cache);
    const found = cache.taskIds.map((name) => {
      const { verifierMode, artifactPaths, evidence } = cache.task(name);
      return [name, verifierMode, ...artifactPaths, evidence.passed];
    });
    expect(found).toEqual([
      ['ledger-totals', 'artifact', '/app', null],
      ['quota-report', 'artifact', '/app', 3],
      ['rescue-commit', 'artifact', '/app', null],
      ['roman-numerals', 'artifact', '/app', 4],
      ['status-service', 'live', null],
      ['unit-quiz', 'artifact', '/app', null],
      ['word-tally', 'artifact', '/app', 3],
    ]);
  });

  const TASKS = {
    elsewhere: task('echo x > /srv-answer', '[ -e /srv-answer ]'),
    inside: task('echo x > /app/answer', '[ -e /app/answer ]'),
    named: task('mkdir /data; echo x > /data/y', '[ -e /data/y ]', {
      'task.toml':
        '[verifier]\nartifact_paths = ["/data"]\n[environment]\nstorage_mb = 64\nallow_internet = false\n',
    }),
    nobody: task('true', '[ -e /app/answer ]'),
    anybody: task('true', 'true'),
    broken: task('true', 'true', { 'tests/test.sh': `${SHELL}\nexit 3\n` }),
    unbuildable: task('true', 'true', {
      'environment/Dockerfile': 'FROM cvm-evaluator-test/busybox:1\nCOPY no /\n',
    }),
  };

  it('picks the strictest mode, leaves out by name what fails, and keeps what was printed', async () => {
    const logs = scratchFolder();
    const run = await prepare(TASKS, { reps: 2, failing: 'leave_out', logs });
    const { manifest } = await bakeTasks(run.options);
    expect(verdicts(run)).toEqual([
      ['anybody', 'failing', 'nop, artifact: reward 1'],
      ['broken', 'failing', expect.stringContaining('verifier_broken: ')],
      ['elsewhere', 'stable', 'restart'],
      ['inside', 'stable', 'artifact'],
      ['named', 'stable', 'artifact'],
      ['nobody', 'failing', 'oracle, restart: reward 0'],
    ]);
    expect(run.unbuilt).toEqual(['image_build_failed']);
    expect(manifest.tasks.map((one) => [one.task_id, one.artifact_paths])).toEqual([
      ['elsewhere', []],
      ['inside', ['/app']],
      ['named', ['/data']],
    ]);
    expect((await openCache(run.cache)).taskIds).toEqual(['elsewhere', 'inside', 'named']);
    expect((await readdir(join(logs, 'inside'))).sort()).toEqual([
      'nop-0-artifact',
      'nop-1-artifact',
      'oracle-0-artifact',
      'oracle-1-artifact',
    ]);
  });

  it('refuses the bake for one task that fails, after its report', async () => {
    const { inside, nobody } = TASKS;
    const run = await prepare({ inside, nobody }, {});
    expect(await rejectionCode(bakeTasks(run.options))).toBe('bake_check_failed');
    expect(verdicts(run)).toHaveLength(2);
    await expect(readdir(run.cache)).rejects.toThrow('ENOENT');
  });
});
