import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { STAND_IN_LABEL, STAND_IN_VALUE, SUITE_LABEL } from '../../guest/tasks/image-rules.ts';
import { makeBases } from '../../scripts/tasks/base.ts';
import { connectImageStore } from '../../scripts/tasks/image-store.ts';
import type { Suite } from '../../scripts/tasks/stand-ins.ts';
import { ENGINE_SOCKET } from './fixtures.ts';

const run = promisify(execFile);
// No other test is built on it.
const TAG = 'debian:13.0-slim';

it('a stand-in gives its name to another suite that is asked for, and gets it back', async () => {
  const store = await connectImageStore(ENGINE_SOCKET);
  const make = (suite?: Suite) =>
    makeBases({
      engineSocket: ENGINE_SOCKET,
      tags: new Set([TAG]),
      ...(suite === undefined ? {} : { suite }),
      onProgress: () => {},
    });
  await make();
  const usual = await store.inspect(TAG);
  if (usual?.labels[STAND_IN_LABEL] !== STAND_IN_VALUE) return;
  try {
    const [made] = await make('bookworm');
    expect(made).toMatchObject({ tag: TAG, action: 'made' });
    const other = await store.inspect(TAG);
    expect(other?.labels).toMatchObject({ [STAND_IN_LABEL]: STAND_IN_VALUE, [SUITE_LABEL]: 'bookworm' });
    const script = '. /etc/os-release; echo "$VERSION_CODENAME"; python -c "print(1 + 1)"';
    const { stdout } = await run('docker', ['run', '--rm', '--network=none', TAG, 'sh', '-c', script]);
    expect(stdout).toBe('bookworm\n2\n');
    // Nobody asks for a suite: the name has an image, and keeps it.
    expect(await make()).toEqual([{ tag: TAG, image: other?.id, action: 'kept' }]);
    expect(await make('bookworm')).toEqual([{ tag: TAG, image: other?.id, action: 'kept' }]);
  } finally {
    const other = await store.inspect(TAG);
    await make('trixie');
    if (other !== null && other.id !== usual.id) await run('docker', ['rmi', other.id]);
  }
  expect((await store.inspect(TAG))?.id).toBe(usual.id);
});
