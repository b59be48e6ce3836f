import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import type { PathStat } from '../../../../guest/engine/port.ts';
import { packTar, type TarEntry } from '../../../../guest/engine/tar.ts';
import { copyBetween } from '../../../../guest/trial/broker/copy.ts';
import type { TransferCall } from '../../../../guest/trial/broker/protocol.ts';

const DIRECTORY: PathStat = {
  name: 'd',
  sizeBytes: 4096,
  mode: 0o755,
  isRegularFile: false,
  isDirectory: true,
  linkTarget: '',
};
const CALL: TransferCall = { id: 1, call: 'upload', source: '/d', target: '/app/d', what: 'directory' };
const SIGNAL = new AbortController().signal;
const file = (path: string, size: number): TarEntry => ({ path, bytes: Buffer.alloc(size), mode: 0o644 });

/** Two containers of which the one has `entries` at /d, and the other every directory. */
const engineWith = (entries: readonly TarEntry[]) => ({
  statPath: async () => DIRECTORY,
  getArchive: async () => Readable.from([packTar(entries)]),
  putArchive: async (_id: string, _path: string, tar: Readable | Buffer) => {
    for await (const _chunk of tar as Readable);
  },
});
const copy = (entries: readonly TarEntry[], allowance: { bytes: number }, call: Partial<TransferCall> = {}) =>
  copyBetween(engineWith(entries), { from: 'sandbox', to: 'task' }, { ...CALL, ...call }, allowance, SIGNAL);

it('a transfer that is refused half-way costs what it has moved, as a whole one does', async () => {
  const allowance = { bytes: 1000 };
  const root: TarEntry = { path: 'd', directory: true };
  expect(await copy([root, file('d/a', 300)], allowance)).toEqual({ bytes: 300 });
  expect(allowance.bytes).toBe(700);
  const elsewhere = [root, file('d/a', 300), file('other/a', 0)];
  for (const left of [400, 100]) {
    expect(await copy(elsewhere, allowance)).toMatchObject({ error: { code: 'limit' } });
    expect(allowance.bytes).toBe(left);
  }
  expect(await copy([root, file('d/a', 300)], allowance)).toMatchObject({ error: { code: 'limit' } });
});

it('transfers at once have no more together than one after the other', async () => {
  const allowance = { bytes: 1000 };
  const entries: TarEntry[] = [{ path: 'd', directory: true }, file('d/a', 400)];
  const answers = await Promise.all(Array.from({ length: 4 }, () => copy(entries, allowance)));
  expect(answers.filter((answer) => 'bytes' in answer)).toEqual([{ bytes: 400 }, { bytes: 400 }]);
  expect(answers.filter((answer) => 'error' in answer && answer.error.code === 'limit')).toHaveLength(2);
  expect(allowance.bytes).toBe(200);
});

it.each(['/', '/.', '/..', '//', '/app/..', '/./app/../'])(
  'no directory is copied into the root or from it: %s',
  async (root) => {
    const entries: TarEntry[] = [{ path: 'd', directory: true }, file('d/a', 1)];
    const refused = async (call: Partial<TransferCall>) => copy(entries, { bytes: 1000 }, call);
    expect(await refused({ target: root })).toMatchObject({ error: { code: 'refused' } });
    expect(await refused({ source: root })).toMatchObject({ error: { code: 'not_found' } });
  },
);

it.each(['/./dev/shm', '/app/../proc', '//sys/x'])(
  'nothing is copied to a mount or from it: %s',
  async (mount) => {
    for (const call of [{ target: mount }, { source: mount }])
      expect(await copy([], { bytes: 1000 }, call)).toMatchObject({
        error: { message: expect.stringContaining('mount') },
      });
  },
);
