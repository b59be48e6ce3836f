import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startProcess } from '../../../scripts/run/process.ts';
import { scratchFolder } from '../../support/scratch.ts';

const PROCESS = join(import.meta.dirname, '../../../scripts/run/process.ts');
const scratch = scratchFolder();

function script(name: string, text: string): string {
  const path = join(scratch, `${name}.ts`);
  writeFileSync(path, text);
  return path;
}

const options = (path: string) => ({
  name: 'part',
  script: path,
  args: [],
  env: {},
  input: 'what it is given',
});

/** Whether a process is gone, or is one that nobody waits for. */
function hasEnded(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

it('gives a part its input, hands on its lines, and leaves its end to itself', async () => {
  const path = script('echo', 'process.stdin.pipe(process.stdout); console.error("said");');
  const said: string[] = [];
  const onLine = (line: string) => void said.push(line);
  const part = startProcess({ ...options(path), onStdout: onLine, onStderr: onLine });
  expect(await part.exited).toBe(0);
  expect(said.sort()).toEqual(['said', 'what it is given']);
});

it('a part whose parent is killed is asked to end, in time to clean up', async () => {
  const ended = join(scratch, 'ended');
  const part = script(
    'part',
    `import { writeFileSync } from 'node:fs';
     process.on('SIGTERM', () => { writeFileSync(${JSON.stringify(ended)}, ''); process.exit(0); });
     setInterval(() => {}, 1000);
     console.log(process.pid);`,
  );
  const parent = script(
    'parent',
    `import { startProcess } from ${JSON.stringify(PROCESS)};
     startProcess({ ...${JSON.stringify(options(part))}, onStdout: console.log, onStderr: console.error });`,
  );
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', parent], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [pid] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  while (!hasEnded(Number(pid))) await sleep(20);
  expect(existsSync(ended)).toBe(true);
});
