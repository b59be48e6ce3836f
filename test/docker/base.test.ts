import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { STAND_IN_LABEL, STAND_IN_VALUE } from '../../guest/tasks/image-rules.ts';
import { base } from '../../scripts/cli/base.ts';
import { makeBases } from '../../scripts/tasks/base.ts';
import { connectImageStore } from '../../scripts/tasks/image-store.ts';
import { STAND_INS } from '../../scripts/tasks/stand-ins.ts';
import { rejectionCode } from '../support/throws.ts';
import { ENGINE_SOCKET } from './fixtures.ts';

const TAGS = STAND_INS.flatMap(({ tags }) => tags);
const run = promisify(execFile);
const make = () => makeBases({ engineSocket: ENGINE_SOCKET, onProgress: () => {} });

beforeAll(async () => {
  await make();
  // Where a name is missing, a Python may have to be built.
}, 3_600_000);

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

  it.each(['python:3.13-slim-bookworm', 'ubuntu:24.04', 'debian:13-slim'])(
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

  it('python:3.13 has the Python of its name, first on PATH and with what an extension needs', async () => {
    const tag = 'python:3.13-slim-bookworm';
    const store = await connectImageStore(ENGINE_SOCKET);
    if ((await store.inspect(tag))?.labels[STAND_IN_LABEL] !== STAND_IN_VALUE) return;
    const script =
      'import os, ssl, sqlite3, sys, sysconfig; print(sys.version_info[:2], sys.executable, ' +
      "os.path.exists(sysconfig.get_path('include') + '/Python.h'))";
    const { stdout } = await run('docker', ['run', '--rm', '--network=none', tag, 'python', '-c', script]);
    expect(stdout).toBe('(3, 13) /usr/local/bin/python True\n');
  });

  it('says how to start an engine when none answers', async () => {
    const failure = makeBases({ engineSocket: '/absent.sock', onProgress: () => {} });
    expect(await rejectionCode(failure)).toBe('engine_absent');
  });
});

describe('evaluator base', () => {
  it.each([[[]], [['--for', 'nobody']], [['--for', 'tasks', '--fast']]])('refuses %j', async (argv) => {
    expect(await rejectionCode(base(argv))).toBe('usage');
  });
});
