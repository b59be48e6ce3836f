import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type Dirent, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureTestImage } from '../docker/fixtures.ts';
import { type Ended, evaluator, startEvaluator } from '../support/evaluator.ts';
import { scratchFolder } from '../support/scratch.ts';
import { ownedObjects, SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const sh = promisify(execFile);

/** What only the hidden tests say. Never on a command line: `grep` would find itself in /proc. */
const SECRET = `hidden-${randomBytes(16).toString('hex')}`;
const folder = scratchFolder();
const place = (name: string) => join(folder, name);

/** Prints the secret, and passes an agent that could not find it. */
const HIDDEN_TEST = `#!/bin/sh
echo "${SECRET}"
echo "${SECRET}" >&2
if [ "$(cat /app/answer)" = right ] && [ ! -e /app/leak ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;

/**
 * Looks for test.sh's own words everywhere it can read, for longer than its neighbours live; the secret
 * begins with a word that the agent may know without having it.
 */
const SEARCHING_AGENT = `echo right > /app/answer
sleep "$(( $$ % 3 ))"
for dir in /*; do
  case "$dir" in /proc|/sys|/dev|/agent) continue ;; esac
  if grep -rq 'hidden-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]' "$dir" 2>/dev/null; then echo "$dir" > /app/leak; fi
done
`;

function entriesOf(root: string): Dirent[] {
  try {
    return readdirSync(root, { recursive: true, withFileTypes: true });
  } catch {
    // A folder went away while it was read: the next look sees the rest.
    return [];
  }
}

/** Files below a folder that hold the secret. */
function holding(root: string): string[] {
  return entriesOf(root)
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      try {
        return readFileSync(path).includes(SECRET);
      } catch {
        // It was a temporary file, or a socket.
        return false;
      }
    });
}

/** Files on the engine's disk, written since `stamp`, that hold the secret. */
async function onEngine(stamp: string): Promise<string[]> {
  const { stdout } = await sh('docker', ['info', '--format', '{{.DockerRootDir}}']);
  const find = [
    '-newer',
    stamp,
    '-type',
    'f',
    '-size',
    '-1M',
    '-exec',
    'grep',
    '-lF',
    '-f',
    place('pattern'),
    '{}',
    '+',
  ];
  const roots = ['overlay2', 'volumes', 'containers'].map((name) => join(stdout.trim(), name));
  const found = await sh('find', [...roots, ...find]).catch((error: { stdout: string }) => error);
  return found.stdout.split('\n').filter(Boolean);
}

let ended: Ended;
/** What the guest's and the challenge's folders held while they ran. */
const seenWhileRunning = new Set<string>();

removeTaskImages(['secretive']);
beforeAll(async () => {
  await ensureTestImage();
  const plain = await writeTasks(place('plain'), {
    secretive: { ...SMALL_TASK, 'tests/test.sh': HIDDEN_TEST },
  });
  const agent = await writeAgent(place('agent'), SEARCHING_AGENT);
  writeFileSync(place('pattern'), SECRET);
  const golden = place('golden.key');
  expect((await evaluator(['keygen', '--out', golden])).code).toBe(0);
  const baked = await evaluator(['bake', '--from', plain, '--seal', golden, '--out', place('sealed')]);
  expect(baked.code, baked.stderr).toBe(0);
  for (const name of ['tmp', 'out']) mkdirSync(place(name));
  writeFileSync(place('stamp'), '');
  const options = [
    '--cache',
    place('sealed'),
    '--golden-key',
    golden,
    '--agent',
    agent,
    '--out',
    place('out'),
  ];
  const run = startEvaluator(['run', ...options, '--ranked', '--reps', '3', '--json'], {
    TMPDIR: place('tmp'),
  });
  let running = true;
  run.ended.finally(() => {
    running = false;
  });
  while (running) {
    for (const path of [...holding(place('tmp')), ...holding(place('out'))]) seenWhileRunning.add(path);
    await sleep(100);
  }
  ended = await run.ended;
}, 300_000);

describe('a ranked run on a sealed cache', () => {
  it('is accepted: its agents found no hidden test in their first lives', () => {
    expect(ended.code, ended.stderr).toBe(0);
    const summary = JSON.parse(ended.stdout);
    expect([summary.accepted, summary.score]).toEqual([true, 1]);
    expect(summary.tasks[0].reps.map((rep: { reward: number }) => rep.reward)).toEqual([1, 1, 1]);
  });

  it('would have seen the secret, had it been there', () => {
    expect(holding(place('plain'))).toHaveLength(1);
    expect(statSync(place('pattern')).size).toBe(SECRET.length);
  });

  it('leaves no word of the hidden test in the sealed cache', () => {
    expect(holding(place('sealed'))).toEqual([]);
  });

  it('leaves none in files of the guest or the challenge, while they run or after', () => {
    expect([...seenWhileRunning]).toEqual([]);
    expect(holding(place('out'))).toEqual([]);
    expect(readdirSync(place('tmp'))).toEqual([]);
  });

  it('leaves none in anything it logged or printed', () => {
    expect(ended.stdout).not.toContain(SECRET);
    expect(ended.stderr).not.toContain(SECRET);
    expect(readFileSync(join(place('out'), 'journal.jsonl'), 'utf8')).not.toContain(SECRET);
  });

  it('leaves none on the engine', async () => {
    const dead = await ownedObjects();
    expect(dead.filter((object) => object.includes(`:${process.pid}:`))).toEqual([]);
    expect(await onEngine(place('stamp'))).toEqual([]);
  });
});
