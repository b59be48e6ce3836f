import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import fc from 'fast-check';
import { extract, type Header, pack } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { encodeHeader, endOfArchive } from '../../../guest/engine/tar-encode.ts';
import { type FilterEnd, type FilterRules, filterTar } from '../../../guest/engine/tar-filter.ts';

type Forged = Partial<Header> & { name: string; content?: string };
type Seen = Pick<Header, 'name' | 'type' | 'mode' | 'uid' | 'gid'> & { mtime: number; content: string };

const rules = (some: Partial<FilterRules> = {}): FilterRules => ({
  budget: { bytes: 10_000, entries: 20 },
  depth: 8,
  root: 'app',
  newRoot: 'secret/artifacts/srv/app',
  ...some,
});

/** Packed by an implementation that is not ours. */
async function forge(...entries: Forged[]): Promise<Buffer> {
  const stream = pack();
  for (const { content, ...header } of entries) stream.entry(header, content ?? '');
  stream.finalize();
  return buffer(stream);
}

/** What comes out, read by an implementation that is not ours. */
async function filter(source: Readable | Buffer, some: Partial<FilterRules> = {}) {
  const { tar, end } = filterTar(Buffer.isBuffer(source) ? Readable.from([source]) : source, rules(some));
  return { bytes: await buffer(tar), end: await end };
}

async function members(bytes: Buffer): Promise<Seen[]> {
  const seen: Seen[] = [];
  const reader = extract();
  Readable.from([bytes]).pipe(reader);
  for await (const entry of reader) {
    const { name, type, mode, uid, gid, mtime } = entry.header;
    const content = await text(entry);
    seen.push({ name, type, mode, uid, gid, mtime: (mtime?.getTime() ?? 0) / 1000, content });
  }
  return seen;
}

const plain = { uid: 0, gid: 0, mtime: new Date(0) };

describe('filterTar', () => {
  it('lets files and directories through below a new root, with owner and time', async () => {
    const long = `app/${'component/'.repeat(25)}file`;
    const tar = await forge(
      { ...plain, name: 'app/', type: 'directory', mode: 0o755 },
      { name: 'app/a', content: 'A', mode: 0o600, uid: 7, gid: 8, mtime: new Date(1e12) },
      { ...plain, name: long, content: 'deep', mode: 0o644 },
      { name: 'app/pax', content: 'p', mode: 0o644, ...plain, pax: { uid: '4000000', mtime: '12.75' } },
    );
    const { bytes, end } = await filter(tar, { depth: 40 });
    expect(end).toBe('whole');
    // The other implementation reads no owner from an extended header.
    expect(bytes.includes('15 uid=4000000\n')).toBe(true);
    const owner = { uid: 0, gid: 0, mtime: 0 };
    expect(await members(bytes)).toEqual([
      { name: 'secret/artifacts/srv/app/', type: 'directory', mode: 0o755, ...owner, content: '' },
      {
        name: 'secret/artifacts/srv/app/a',
        type: 'file',
        mode: 0o600,
        uid: 7,
        gid: 8,
        mtime: 1e9,
        content: 'A',
      },
      {
        name: long.replace('app', 'secret/artifacts/srv/app'),
        type: 'file',
        mode: 0o644,
        ...owner,
        content: 'deep',
      },
      {
        name: 'secret/artifacts/srv/app/pax',
        type: 'file',
        mode: 0o644,
        uid: 0,
        gid: 0,
        mtime: 12,
        content: 'p',
      },
    ]);
  });

  it('takes away what gives privileges', async () => {
    const capability = { 'SCHILY.xattr.security.capability': 'x' };
    const tar = await forge(
      { name: 'app/s', mode: 0o6755, content: 'x', pax: capability },
      { name: 'app/d', type: 'directory', mode: 0o7777 },
    );
    const { bytes } = await filter(tar);
    expect((await members(bytes)).map(({ mode }) => mode)).toEqual([0o755, 0o777]);
    expect(bytes.includes('capability')).toBe(false);
  });

  it.each<Forged>([
    { name: 'app/x', type: 'symlink', linkname: '/etc' },
    { name: 'app/x', type: 'link', linkname: '/etc/shadow' },
    { name: 'app/x', type: 'character-device' },
    { name: 'app/x', type: 'block-device' },
    { name: 'app/x', type: 'fifo' },
    { name: '../../x', type: 'symlink', linkname: '/etc' },
  ])('leaves out $type $name', async (entry) => {
    const { bytes, end } = await filter(await forge(entry, { name: 'app/after', content: 'y' }));
    expect([end, (await members(bytes)).map(({ name }) => name)]).toEqual([
      'whole',
      ['secret/artifacts/srv/app/after'],
    ]);
  });

  it.each<[string, Forged, Partial<FilterRules>, FilterEnd]>([
    ['a name that climbs out', { name: 'app/../../x' }, {}, 'refused'],
    ['an absolute name', { name: '/app/x' }, {}, 'refused'],
    ['another root', { name: 'apps/x' }, {}, 'refused'],
    ['an empty component', { name: 'app//x' }, {}, 'refused'],
    ['a component of 256 bytes', { name: `app/${'x'.repeat(256)}` }, {}, 'refused'],
    ['a path of 4 KiB', { name: `app/${'x/'.repeat(2100)}x` }, { depth: 1e6 }, 'refused'],
    ['a NUL in a name', { name: 'app/x', pax: { path: 'app/x\0y' } }, {}, 'refused'],
    ['a path too deep', { name: 'app/1/2/3/4' }, { depth: 3 }, 'refused'],
    ['a contiguous file', { name: 'app/x', type: 'contiguous-file' }, {}, 'refused'],
    ['a sparse file record', { name: 'app/x', pax: { 'GNU.sparse.size': '1' } }, {}, 'refused'],
    ['a huge extended header', { name: 'app/x', pax: { comment: 'x'.repeat(2 ** 20) } }, {}, 'refused'],
    ['too many bytes', { name: 'app/x', content: 'xyz' }, { budget: { bytes: 2, entries: 9 } }, 'bytes'],
    ['too many members', { name: 'app/x' }, { budget: { bytes: 2, entries: 0 } }, 'refused'],
  ])('stops at %s', async (_, entry, some, end) => {
    const result = await filter(await forge(entry), some);
    expect(result.end).toBe(end);
    expect(await members(Buffer.concat([result.bytes, endOfArchive()]))).toEqual([]);
  });

  it('counts several archives against one budget', async () => {
    const budget = { bytes: 5, entries: 3 };
    const tar = await forge({ name: 'app/x', content: 'xyz' });
    expect((await filter(tar, { budget })).end).toBe('whole');
    expect((await filter(tar, { budget })).end).toBe('bytes');
  });

  it('refuses a terabyte by its header, before a byte of it', async () => {
    const name = Buffer.from('app/hole');
    const size = 2 ** 40;
    const header = encodeHeader({ name, type: '0', mode: 0o644, uid: 0, gid: 0, mtime: 0, size });
    const source = new PassThrough();
    source.write(header);
    expect(await filter(source, { budget: { bytes: size - 1, entries: 9 } })).toEqual({
      bytes: Buffer.alloc(0),
      end: 'bytes',
    });
    expect(source.destroyed).toBe(true);
  });

  it('holds one chunk at a time', async () => {
    const size = 64 * 1024 * 1024;
    let pulled = 0;
    async function* endless() {
      const name = Buffer.from('app/big');
      yield encodeHeader({ name, type: '0', mode: 0o644, uid: 0, gid: 0, mtime: 0, size });
      for (; pulled < size; pulled += 65_536) yield Buffer.alloc(65_536);
      yield endOfArchive();
    }
    const { tar, end } = filterTar(Readable.from(endless()), rules({ budget: { bytes: size, entries: 1 } }));
    let read = 0;
    for await (const chunk of tar) {
      read += chunk.length;
      expect(pulled - read).toBeLessThan(4 * 1024 * 1024);
    }
    expect(await end).toBe('whole');
  });

  it.each<[string, (tar: Buffer) => Readable]>([
    ['breaks off', (tar) => Readable.from([tar.subarray(0, 700)])],
    [
      'fails',
      (tar) =>
        Readable.from(
          (async function* () {
            yield tar.subarray(0, 700);
            throw new Error('reset');
          })(),
        ),
    ],
  ])('ends without an error when its source %s', async (_, source) => {
    const tar = await forge({ name: 'app/x', content: 'x'.repeat(600) });
    expect((await filter(source(tar))).end).toBe('broken');
  });

  it('lets go of its source when nobody reads on', async () => {
    const source = new PassThrough();
    const { tar, end } = filterTar(source, rules());
    tar.destroy();
    expect(await end).toBe('broken');
    expect(source.destroyed).toBe(true);
  });

  it('never lets anything out of the new root, whatever comes in', async () => {
    const name = fc.array(fc.constantFrom('app', '..', '.', '', 'x', '/', 'é'), {
      minLength: 1,
      maxLength: 5,
    });
    const type = fc.constantFrom('file' as const, 'directory' as const, 'symlink' as const, 'link' as const);
    const entry = fc.record({
      name: name.map((parts) => parts.join('/')),
      type,
      linkname: fc.constant('/etc'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 6 }), fc.boolean(), async (entries, flip) => {
        const tar = await forge(...entries.filter((one) => one.name !== ''));
        if (flip && tar.length > 1024) tar[Math.floor(tar.length / 3)] = 0x2e;
        for (const member of await members(Buffer.concat([(await filter(tar)).bytes, endOfArchive()]))) {
          expect(member.name).toMatch(/^secret\/artifacts\/srv\/app(\/(?!\.\.?(\/|$))[^/]+)*\/?$/);
          expect(member.type).toMatch(/^(file|directory)$/);
        }
      }),
      { numRuns: 200 },
    );
  });
});
