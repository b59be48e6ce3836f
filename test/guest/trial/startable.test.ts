import { describe, expect, it } from 'vitest';
import { parsePathStat } from '../../../guest/engine/path-stat.ts';
import { isStartable } from '../../../guest/trial/startable.ts';

const FILE = 0o644;
const DIRECTORY = 2 ** 31 + 0o755;
const LINK = 2 ** 27 + 0o777;
const PIPE = 2 ** 25 + 0o644;

type Found = { mode: number; size?: number; linkTarget?: string };

const files = (found: Record<string, Found>) => ({
  statPath: async (_: string, path: string) => {
    const at = found[path];
    if (at === undefined) return null;
    const { mode, size = 100, linkTarget = '' } = at;
    return parsePathStat(
      Buffer.from(JSON.stringify({ name: 'x', size, mode, linkTarget })).toString('base64'),
    );
  },
});

const ETC = { '/etc': { mode: DIRECTORY }, '/etc/group': { mode: FILE } };
const passwd = (at: Found, more: Record<string, Found> = {}) =>
  isStartable(files({ ...ETC, '/etc/passwd': at, ...more }), 'id');

describe('a container that an agent has had', () => {
  it('can be started with account files, with links to them, and without', async () => {
    expect(await passwd({ mode: FILE })).toBe(true);
    expect(await passwd({ mode: LINK, linkTarget: '/srv/p' }, { '/srv/p': { mode: FILE } })).toBe(true);
    expect(await isStartable(files(ETC), 'id')).toBe(true);
    expect(await isStartable(files({}), 'id')).toBe(true);
  });

  it.each<[string, Found, Record<string, Found>]>([
    ['a pipe', { mode: PIPE }, {}],
    ['a directory', { mode: DIRECTORY }, {}],
    ['a megabyte and a byte', { mode: FILE, size: 1024 * 1024 + 1 }, {}],
    ['a link to a pipe', { mode: LINK, linkTarget: '/srv/p' }, { '/srv/p': { mode: PIPE } }],
    ['a link to a large file', { mode: LINK, linkTarget: '/srv/p' }, { '/srv/p': { mode: FILE, size: 1e9 } }],
    ['a link to nothing', { mode: LINK, linkTarget: '/srv/p' }, {}],
    [
      'a link to a link',
      { mode: LINK, linkTarget: '/srv/p' },
      { '/srv/p': { mode: LINK, linkTarget: '/x' } },
    ],
    ['a link that could not be followed', { mode: LINK }, {}],
    // Another file stands there once the container's own mounts are made.
    ['a link into /dev', { mode: LINK, linkTarget: '/dev/ptmx' }, { '/dev/ptmx': { mode: FILE } }],
    ['a link into /proc', { mode: LINK, linkTarget: '/proc/1/root/p' }, { '/proc/1/root/p': { mode: FILE } }],
  ])('cannot be started with %s for an account file', async (_, at, more) => {
    expect(await passwd(at, more)).toBe(false);
  });

  it('cannot be started when /etc is no directory', async () => {
    expect(await isStartable(files({ '/etc': { mode: LINK, linkTarget: '/srv' } }), 'id')).toBe(false);
    expect(await isStartable(files({ '/etc': { mode: FILE } }), 'id')).toBe(false);
  });
});
