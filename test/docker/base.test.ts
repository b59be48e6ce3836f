import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { STAND_IN_LABEL, STAND_IN_VALUE } from '../../guest/tasks/image-rules.ts';
import { base } from '../../scripts/cli/base.ts';
import { makeBases, tagsOfTasks } from '../../scripts/tasks/base.ts';
import { connectImageStore } from '../../scripts/tasks/image-store.ts';
import { STAND_INS } from '../../scripts/tasks/stand-ins.ts';
import { scratchFolder } from '../support/scratch.ts';
import { rejectionCode } from '../support/throws.ts';
import { ENGINE_SOCKET } from './fixtures.ts';

// The others are built from source: stand-in-python.slow.test.ts.
const TAGS = STAND_INS.filter(({ python }) => python === 'debian').flatMap(({ tags }) => tags);
const run = promisify(execFile);
const make = (tags: readonly string[] = TAGS) =>
  makeBases({ engineSocket: ENGINE_SOCKET, tags: new Set(tags), onProgress: () => {} });

beforeAll(async () => {
  await make();
});

describe('makeBases', () => {
  it('leaves alone what is there', async () => {
    const results = await make();
    expect(results.map(({ tag }) => tag).sort()).toEqual([...TAGS].sort());
    expect(new Set(results.map(({ action }) => action))).toEqual(new Set(['kept']));
  });

  it('gives a name that was removed to the image made before', async () => {
    const store = await connectImageStore(ENGINE_SOCKET);
    const before = await store.inspect('debian:trixie-slim');
    if (before?.labels[STAND_IN_LABEL] !== STAND_IN_VALUE) return;
    await run('docker', ['rmi', 'debian:trixie-slim']);
    const made = (await make()).filter(({ action }) => action === 'made');
    expect(made).toEqual([{ tag: 'debian:trixie-slim', image: before.id, action: 'made' }]);
  });

  it.each(['python:3.11-slim-bookworm', 'ubuntu:24.04', 'debian:13-slim'])(
    '%s runs Python and trusts what this machine trusts',
    async (tag) => {
      const store = await connectImageStore(ENGINE_SOCKET);
      if ((await store.inspect(tag))?.labels[STAND_IN_LABEL] !== STAND_IN_VALUE) return;
      const script =
        'python -c "print(1 + 1)"; ls /usr/lib/python3*/EXTERNALLY-MANAGED 2>&-; cat /etc/ssl/certs/ca-certificates.crt';
      const { stdout } = await run('docker', ['run', '--rm', '--network=none', tag, 'sh', '-c', script]);
      expect(stdout).toBe(`2\n${await readFile('/etc/ssl/certs/ca-certificates.crt', 'utf8')}`);
    },
  );

  it('makes what tasks are built on, and nothing else', async () => {
    const folder = scratchFolder();
    const dockerfiles = { a: 'FROM debian:13-slim AS x\nFROM x', b: 'FROM ubuntu:24.04\nFROM other:1' };
    for (const [name, dockerfile] of Object.entries(dockerfiles)) {
      await mkdir(join(folder, name, 'environment'), { recursive: true });
      await writeFile(join(folder, name, 'task.toml'), '');
      await writeFile(join(folder, name, 'environment', 'Dockerfile'), dockerfile);
    }
    const tags = await tagsOfTasks(folder);
    expect(tags).toEqual(new Set(['debian:13-slim', 'ubuntu:24.04', 'other:1']));
    expect((await make([...tags])).map(({ tag }) => tag).sort()).toEqual(['debian:13-slim', 'ubuntu:24.04']);
  });

  it('says how to start an engine when none answers', async () => {
    const failure = makeBases({
      engineSocket: '/absent.sock',
      tags: new Set(TAGS),
      onProgress: () => {},
    });
    expect(await rejectionCode(failure)).toBe('engine_absent');
  });
});

describe('evaluator base', () => {
  it.each([[[]], [['--for', 'nobody']], [['--for', 'tasks', '--fast']], [['--for', 'guest', '--from', '.']]])(
    'refuses %j',
    async (argv) => {
      expect(await rejectionCode(base(argv))).toBe('usage');
    },
  );
});
