import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { STAND_IN_LABEL, STAND_IN_VALUE } from '../../guest/tasks/image-rules.ts';
import { makeBases } from '../../scripts/tasks/base.ts';
import { connectImageStore } from '../../scripts/tasks/image-store.ts';
import { ENGINE_SOCKET } from './fixtures.ts';

const run = promisify(execFile);
const TAG = 'python:3.13-slim-bookworm';

it('python:3.13 has the Python of its name, first on PATH and with what an extension needs', async () => {
  await makeBases({ engineSocket: ENGINE_SOCKET, tags: new Set([TAG]), onProgress: () => {} });
  const store = await connectImageStore(ENGINE_SOCKET);
  if ((await store.inspect(TAG))?.labels[STAND_IN_LABEL] !== STAND_IN_VALUE) return;
  const script =
    'import os, ssl, sqlite3, sys, sysconfig; print(sys.version_info[:2], sys.executable, ' +
    "os.path.exists(sysconfig.get_path('include') + '/Python.h'))";
  const { stdout } = await run('docker', ['run', '--rm', '--network=none', TAG, 'python', '-c', script]);
  expect(stdout).toBe('(3, 13) /usr/local/bin/python True\n');
});
