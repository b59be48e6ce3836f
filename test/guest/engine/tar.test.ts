import { Readable } from 'node:stream';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { packTar, type TarEntry } from '../../../guest/engine/tar.ts';

interface Seen {
  name: string;
  type: string;
  mode: number;
  uid: number;
  mtime: number;
  bytes: Buffer;
}

/** Reads with an implementation that is not ours. */
async function unpack(tar: Buffer): Promise<Seen[]> {
  const seen: Seen[] = [];
  for await (const entry of Readable.from([tar]).pipe(extract())) {
    const { name, type, mode, uid, mtime } = entry.header;
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    seen.push({ name, type: `${type}`, mode: mode ?? -1, uid: uid ?? -1, mtime: Number(mtime), bytes });
  }
  return seen;
}

describe('packTar', () => {
  it('packs files and only the directories that were named, owned by root, at time zero', async () => {
    const tar = packTar([
      { path: './', directory: true },
      { path: 'agent', directory: true },
      { path: 'agent/run', bytes: Buffer.from('#!/bin/sh\n'), mode: 0o755 },
      { path: 'task/in.md', bytes: Buffer.alloc(513, 'x'), mode: 0o644 },
    ]);
    const owner = { uid: 0, mtime: 0 };
    expect(await unpack(tar)).toMatchObject([
      { name: './', type: 'directory', mode: 0o755, ...owner },
      { name: 'agent/', type: 'directory', mode: 0o755, ...owner },
      { name: 'agent/run', type: 'file', mode: 0o755, ...owner },
      { name: 'task/in.md', type: 'file', mode: 0o644, bytes: Buffer.alloc(513, 'x'), ...owner },
    ]);
  });

  it('packs the same bytes for the same entries', () => {
    const entries: TarEntry[] = [{ path: 'a', bytes: Buffer.from('1'), mode: 0o644 }];
    expect(packTar(entries)).toEqual(packTar(entries));
  });

  it('keeps any allowed path and content, names beyond 100 bytes too', async () => {
    const component = fc.stringMatching(/^[a-zé_-]{1,80}$/);
    const paths = fc.uniqueArray(fc.array(component, { minLength: 1, maxLength: 6 }), {
      selector: (components) => components.join('/'),
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(paths, fc.uint8Array({ maxLength: 1500 }), async (list, content) => {
        const bytes = Buffer.from(content);
        const entries = list.map(
          (components): TarEntry => ({ path: components.join('/'), bytes, mode: 0o644 }),
        );
        const seen = await unpack(packTar([{ path: './', directory: true }, ...entries]));
        expect(seen.slice(1).map(({ name }) => name)).toEqual(entries.map(({ path }) => path));
        expect(seen.slice(1).every((entry) => entry.bytes.equals(bytes))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it.each([
    '',
    '/etc/passwd',
    '../x',
    'a/../b',
    'a//b',
    'a/./b',
    'a\nb',
    'a\0b',
    '\u001b[2J',
    'a\u202eb',
    '\ud800',
    'x'.repeat(256),
    'BZh91AY',
  ])('refuses the path %j', (path) => {
    expect(() => packTar([{ path, bytes: Buffer.alloc(0), mode: 0o644 }])).toThrow(
      expect.objectContaining({ code: 'archive_entry_invalid' }),
    );
  });

  it('refuses a path that comes twice', () => {
    const entry: TarEntry = { path: 'a', bytes: Buffer.alloc(0), mode: 0o644 };
    expect(() => packTar([entry, { path: './a', directory: true }])).toThrow(
      expect.objectContaining({ code: 'archive_entry_invalid' }),
    );
  });
});
