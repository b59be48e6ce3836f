import { Readable } from 'node:stream';
import fc from 'fast-check';
import { type Header, pack } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { packTar, type TarEntry } from '../../../guest/engine/tar.ts';
import { readTar, type TarCaps } from '../../../guest/engine/tar-read.ts';

type Forged = Partial<Header> & { name: string; content?: string };

const CAPS: TarCaps = { totalBytes: 10_000, entries: 20, depth: 8, timeMs: 20_000 };

function read(tar: Buffer, caps: Partial<TarCaps> = {}) {
  return readTar(Readable.from([tar]), { ...CAPS, ...caps });
}

/** Packs what packTar refuses to, with an implementation that is not ours. */
async function forge(...entries: Forged[]): Promise<Buffer> {
  const stream = pack();
  for (const { content, ...header } of entries) stream.entry(header, content ?? '');
  stream.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Changes bytes of the first header, and mends its checksum. */
function patch(tar: Buffer, at: number, text: string): Buffer {
  const patched = Buffer.from(tar);
  patched.write(text, at, 'latin1');
  patched.fill(' ', 148, 156);
  const sum = patched.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  patched.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1');
  return patched;
}

const file = (path: string, text = ''): TarEntry => ({ path, bytes: Buffer.from(text), mode: 0o644 });

describe('readTar', () => {
  it('gives back what was packed, however the stream is cut', async () => {
    const name = fc.stringMatching(/^[a-z]{1,40}$/);
    const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((components) => components.join('/'));
    const entries = fc.uniqueArray(fc.tuple(path, fc.uint8Array({ maxLength: 1200 })), {
      selector: ([entry]) => entry,
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(entries, fc.integer({ min: 1, max: 2000 }), async (list, size) => {
        // A file and a directory of one name cannot both be.
        fc.pre(!list.some(([a]) => list.some(([b]) => b.startsWith(`${a}/`))));
        const tar = packTar([
          { path: './', directory: true },
          ...list.map(([at, bytes]): TarEntry => ({ path: at, bytes, mode: 0o755 })),
        ]);
        const chunks = Array.from({ length: Math.ceil(tar.length / size) }, (_, index) =>
          tar.subarray(index * size, (index + 1) * size),
        );
        const files = await readTar(Readable.from(chunks), CAPS);
        expect(files).toEqual(
          list.map(([at, bytes]) => ({ path: at, bytes: Buffer.from(bytes), mode: 0o755 })),
        );
      }),
      { numRuns: 60 },
    );
  });

  it.each<[string, Forged, RegExp]>([
    ['a name that climbs out', { name: '../x', content: 'x' }, /component/],
    ['an absolute name', { name: '/etc/passwd', content: 'x' }, /absolute/],
    ['a symbolic link', { name: 'a', type: 'symlink', linkname: '/etc' }, /neither/],
    ['a hard link', { name: 'a', type: 'link', linkname: '/etc/shadow' }, /neither/],
    ['a character device', { name: 'a', type: 'character-device' }, /neither/],
    ['a block device', { name: 'a', type: 'block-device' }, /neither/],
    ['a FIFO', { name: 'a', type: 'fifo' }, /neither/],
    ['a setuid file', { name: 'a', mode: 0o4755, content: 'x' }, /setuid/],
    ['a setgid file', { name: 'a', mode: 0o2755, content: 'x' }, /setgid/],
    [
      'a file capability',
      { name: 'a', content: 'x', pax: { 'SCHILY.xattr.security.capability': 'x' } },
      /kind not read/,
    ],
    [
      'a sparse file record',
      { name: 'a', content: 'x', pax: { 'GNU.sparse.size': '1099511627776' } },
      /kind not read/,
    ],
    ['a newline in a name', { name: 'a\nb', content: 'x' }, /control/],
    ['an escape sequence in a name', { name: 'a\u001b[2J', content: 'x' }, /control/],
    ['a bidi mark in a name', { name: 'a\u202eb', content: 'x' }, /control/],
    ['a component of 256 bytes', { name: 'x'.repeat(256), content: 'x' }, /longer than 255/],
    [
      'an extended header of 1 MiB',
      { name: 'a', content: 'x', pax: { comment: 'x'.repeat(2 ** 20) } },
      /extended header of/,
    ],
    ['a first name like a compression magic', { name: 'BZh9', content: 'x' }, /compressed/],
  ])('refuses %s', async (_, entry, reason) => {
    await expect(read(await forge(entry))).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(reason),
    });
  });

  it.each<[string, Forged[], RegExp]>([
    ['a name that comes twice', [{ name: 'a' }, { name: 'a' }], /comes twice/],
    ['a name equal after case folding', [{ name: 'a' }, { name: 'A' }], /comes twice/],
    ['a name equal after NFC', [{ name: '\u00e9' }, { name: 'e\u0301' }], /comes twice/],
    ['an entry below a file', [{ name: 'a' }, { name: 'a/b' }], /below a file/],
    ['a file in place of a directory', [{ name: 'a', type: 'directory' }, { name: 'a' }], /comes twice/],
    ['a file in place of an implied directory', [{ name: 'a/b' }, { name: 'a' }], /comes twice/],
    [
      'a link, then a file through it',
      [{ name: 'a', type: 'symlink', linkname: '/' }, { name: 'a/b' }],
      /neither/,
    ],
  ])('refuses %s', async (_, headers, reason) => {
    const entries = headers.map((header) =>
      header.type === undefined ? { ...header, content: 'x' } : header,
    );
    await expect(read(await forge(...entries))).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(reason),
    });
  });

  it.each([
    ['a name that is not UTF-8', 0, '\xff\xfe', /UTF-8/],
    ['something hidden behind the NUL of a name', 50, 'hidden', /header is malformed/],
    ['a size in base 256', 124, '\x80\x00\x00\x00', /header is malformed/],
    ['a foreign magic', 257, 'ustar ', /header is malformed/],
    ['an unknown type', 156, 'S', /neither/],
    ['a size smaller than the bytes', 124, '00000000001', /padding/],
  ])('refuses %s', async (_, at, text, reason) => {
    const tar = patch(packTar([file('name', 'x'.repeat(600)), file('b')]), at, text);
    await expect(read(tar)).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(reason),
    });
  });

  it('refuses a NUL in a name that comes in an extended header', async () => {
    const tar = packTar([file('x'.repeat(120))]);
    tar[600] = 0;
    await expect(read(tar)).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(/control/),
    });
  });

  it('refuses a header whose checksum is wrong, and bytes after the end', async () => {
    const broken = packTar([file('a')]);
    broken[0] = 0x62;
    await expect(read(broken)).rejects.toMatchObject({ code: 'archive_refused' });
    const longer = Buffer.concat([packTar([file('a')]), Buffer.from('more')]);
    await expect(read(longer)).rejects.toMatchObject({ code: 'archive_refused' });
  });

  it.each<[string, TarEntry[], Partial<TarCaps>, RegExp]>([
    ['bytes', [file('a', '12345'), file('b', '123456')], { totalBytes: 10 }, /more than 10 bytes/],
    ['entries', [file('a'), file('b'), file('c')], { entries: 2 }, /more than 2 entries/],
    ['depth', [file('a/b/c/d')], { depth: 3 }, /deeper than 3/],
  ])('stops at the cap on %s', async (_, entries, caps, reason) => {
    await expect(read(packTar(entries), caps)).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(reason),
    });
  });

  it('reads nothing of a file above the cap, and lets go of the stream', async () => {
    const header = patch(packTar([file('sparse')]).subarray(0, 512), 124, '17777777777');
    let sent = 0;
    const endless = new Readable({
      highWaterMark: 1,
      read() {
        sent += 1;
        this.push(sent === 1 ? header : Buffer.alloc(65536));
      },
    });
    await expect(readTar(endless, CAPS)).rejects.toMatchObject({ code: 'archive_refused' });
    expect(endless.destroyed).toBe(true);
    expect(sent).toBeLessThan(10);
  });

  it('blames the engine for an archive that breaks off, and for one that never comes', async () => {
    const torn = packTar([file('a', 'x'.repeat(600))]).subarray(0, 700);
    await expect(read(torn)).rejects.toMatchObject({ code: 'engine_error', fault: 'infra' });
    const silent = new Readable({ read() {} });
    await expect(readTar(silent, { ...CAPS, timeMs: 20 })).rejects.toMatchObject({ code: 'engine_timeout' });
    expect(silent.destroyed).toBe(true);
  });
});
