import { randomBytes } from 'node:crypto';
import { deflateRawSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEntryName } from '../../../guest/agent/entry-name.ts';
import { MAX_PACKED_BYTES, MAX_UNPACKED_BYTES, parseAgentPackage } from '../../../guest/agent/package.ts';
import { packTar } from '../../../guest/engine/tar.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { descriptor, MANIFEST, type RawArchive, type RawEntry, rawZip } from '../../support/raw-zip.ts';
import { rejectionCode } from '../../support/throws.ts';

const LOCATOR = Buffer.concat([Buffer.from('504b0607', 'hex'), Buffer.alloc(16)]);
const text = Buffer.from('print("hello")\n'.repeat(20));
const refusal = (entries: readonly RawEntry[], archive: RawArchive = {}) =>
  rejectionCode(parseAgentPackage(rawZip([MANIFEST, ...entries], archive)));

describe('parseAgentPackage', () => {
  it('opens a package: files sorted by path, bytes inflated, modes kept, directories implied', async () => {
    const zip = rawZip([
      { name: 'src/', mode: 0o040755 },
      { name: 'src/main.py', data: text, method: 8 },
      { name: 'run', data: Buffer.from('#!/bin/sh\n'), mode: 0o100755 },
      { name: 'plain', data: text, mode: 0 },
      { name: 'empty' },
      { name: 'naïve.txt', data: text },
      MANIFEST,
    ]);
    const opened = await parseAgentPackage(zip);
    expect(opened.agentHash).toBe(sha256Hex(zip));
    expect(opened.zip.equals(zip)).toBe(true);
    expect(opened.manifest).toEqual({
      schema_version: 1,
      kind: 'container',
      command: ['/agent/run'],
      env: [],
    });
    expect(opened.files.map(({ path, executable }) => [path, executable])).toEqual([
      ['agent.yaml', false],
      ['empty', false],
      ['naïve.txt', false],
      ['plain', false],
      ['run', true],
      ['src/main.py', false],
    ]);
    expect(opened.files.at(-1)?.bytes.equals(text)).toBe(true);
  });

  it.each([0, 4])('reads data descriptors, with a signature or without (from byte %d)', async (from) => {
    const packed = deflateRawSync(text);
    const zip = rawZip([
      MANIFEST,
      {
        name: 'streamed',
        data: text,
        packed,
        method: 8,
        flags: 0x8,
        local: { crc: 0, size: 0, packedSize: 0 },
        descriptor: descriptor(text, packed.length).subarray(from),
      },
    ]);
    expect((await parseAgentPackage(zip)).files).toHaveLength(2);
  });

  const names: [string, string | Buffer][] = [
    ['a parent directory', '../up'],
    ['a parent directory inside', 'a/../b'],
    ['a parent directory at the end', 'a/..'],
    ['an absolute name', '/etc/passwd'],
    ['the current directory', './a'],
    ['an empty component', 'a//b'],
    ['an empty name', ''],
    ['a lone slash', '/'],
    ['a backslash', '..\\up'],
    ['NUL', 'a\0b'],
    ['a newline', 'a\nb'],
    ['ESC', 'a\x1b[31mb'],
    ['DEL', 'a\x7fb'],
    ['a C1 control', 'a\u009bb'],
    ['a bidi override', 'a\u202eb'],
    ['a bidi isolate', 'a\u2066b'],
    ['a zero-width space', 'a\u200bb'],
    ['a line separator', 'a\u2028b'],
    ['a byte order mark', '\ufeffa'],
    ['a private use character', 'a\ue000b'],
    ['an unassigned character', 'a\u0378b'],
    ['invalid UTF-8', Buffer.from([0x61, 0xff])],
    ['overlong UTF-8', Buffer.from([0xc0, 0xae, 0xc0, 0xae])],
    ['a surrogate in UTF-8', Buffer.from([0xed, 0xa0, 0x80])],
    ['a component of 256 bytes', 'a'.repeat(256)],
    ['a component of 256 bytes in 128 letters', 'é'.repeat(128)],
    ['more than 1024 bytes', `${'a/'.repeat(512)}a`],
  ];
  it.each(names)('refuses a name with %s', async (_, name) => {
    expect(await refusal([{ name, data: text }])).toBe('agent_package_refused');
  });

  it('takes no name that a container could not be given', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
    const letter = fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code));
    fc.assert(
      fc.property(
        fc.oneof(
          part,
          letter,
          fc.array(part).map((parts) => parts.join('/')),
        ),
        (name) => {
          const raw = Buffer.from(name);
          let path: string;
          try {
            path = decodeEntryName(raw);
          } catch {
            return;
          }
          packTar([{ path: `agent/${path}`, bytes: raw, mode: 0o644 }]);
        },
      ),
      { numRuns: 5000 },
    );
  });

  it('takes a component of 255 bytes', async () => {
    const zip = rawZip([MANIFEST, { name: `${'a'.repeat(255)}/b`, data: text }]);
    expect((await parseAgentPackage(zip)).files).toHaveLength(2);
  });

  it.each([
    ['the same name', ['a', 'a']],
    ['the manifest again', ['agent.yaml']],
    ['names equal after case folding', ['Readme', 'README']],
    ['names equal after full case folding', ['straße', 'STRASSE']],
    ['names equal after NFC', ['caf\u00e9', 'cafe\u0301']],
    ['directories equal after case folding', ['Lib/a', 'lib/b']],
    ['a file that is a directory too', ['a', 'a/b']],
    ['a directory that is a file too', ['a/b', 'a']],
    ['a directory entry for a file', ['a', 'a/']],
    ['a directory entry twice', ['a/', 'a/']],
  ])('refuses %s', async (_, clashing) => {
    const entries = clashing.map((name) => ({ name, mode: name.endsWith('/') ? 0o040755 : 0o100644 }));
    expect(await refusal(entries)).toBe('agent_package_refused');
  });

  it.each<[string, RawEntry]>([
    ['a symbolic link', { name: 'l', data: Buffer.from('/etc/passwd'), mode: 0o120777 }],
    ['a FIFO', { name: 'f', mode: 0o010644 }],
    ['a character device', { name: 'c', mode: 0o020644 }],
    ['a block device', { name: 'b', mode: 0o060644 }],
    ['a socket', { name: 's', mode: 0o140644 }],
    ['a directory named like a file', { name: 'd', mode: 0o040755 }],
    ['a file named like a directory', { name: 'd/', mode: 0o100644 }],
    ['a directory with data', { name: 'd/', mode: 0o040755, data: text }],
    ['a setuid bit', { name: 'x', mode: 0o104755 }],
    ['a setgid bit', { name: 'x', mode: 0o102755 }],
    ['a sticky bit', { name: 'x', mode: 0o101755 }],
    ['encryption', { name: 'x', data: text, flags: 0x1 }],
    ['strong encryption', { name: 'x', data: text, flags: 0x41 }],
    ['a masked directory', { name: 'x', data: text, flags: 0x2000 }],
    ['patched data', { name: 'x', data: text, flags: 0x20 }],
    ['another compression method', { name: 'x', data: text, method: 12 }],
    ['a name that is not marked as UTF-8', { name: 'é', data: text, flags: 0 }],
    ['an extra field that renames it', { name: 'x', extra: Buffer.from('7570050001000000000', 'hex') }],
    [
      'an extra field that renames it in its local header alone',
      { name: 'x', local: { extra: Buffer.from('5555000075700500010000000078', 'hex') } },
    ],
    ['a ZIP64 extra field', { name: 'x', extra: Buffer.from('0100080000000000000000ff', 'hex') }],
    ['an extra field cut short', { name: 'x', extra: Buffer.from('5555ff00', 'hex') }],
  ])('refuses %s', async (_, entry) => {
    expect(await refusal([entry])).toBe('agent_package_refused');
  });

  it.each<[string, Buffer]>([
    ['zip', rawZip([])],
    ['zip', rawZip([{ name: 'a', data: text }])],
    ['zip behind a script', Buffer.concat([Buffer.from('#!/bin/sh\n'), rawZip([{ name: 'a' }])])],
    ['zip with a comment, behind a script', rawZip([], { prefix: text, comment: Buffer.from('hi') })],
    ['gzip', gzipSync(text)],
    ['bzip2', Buffer.from('425a6839314159265359', 'hex')],
    ['xz', Buffer.from('fd377a585a000004', 'hex')],
    ['zstd', Buffer.from('28b52ffd0458', 'hex')],
    ['7z', Buffer.from('377abcaf271c0004', 'hex')],
    ['rar', Buffer.from('526172211a0701', 'hex')],
    ['tar', Buffer.concat([Buffer.alloc(257, 0x61), Buffer.from('ustar\x0000'), Buffer.alloc(247)])],
    ['ar', Buffer.from('!<arch>\n')],
  ])('refuses a nested archive: %s', async (_, data) => {
    expect(await refusal([{ name: 'innocent.txt', data }])).toBe('agent_package_refused');
  });

  it('takes text that only speaks of archives', async () => {
    const data = Buffer.from('magic numbers: PK\x05\x06, PK\x03\x04, ustar, BZ, 7z');
    expect((await parseAgentPackage(rawZip([MANIFEST, { name: 'doc', data }]))).files).toHaveLength(2);
  });

  const packed = deflateRawSync(text);
  it.each<[string, RawEntry]>([
    ['a size too small', { name: 'x', data: text, method: 8, size: text.length - 1 }],
    ['a size too large', { name: 'x', data: text, method: 8, size: text.length + 1 }],
    ['a stored size that differs', { name: 'x', data: text, size: text.length - 1 }],
    ['another checksum', { name: 'x', data: text, crc: 1 }],
    ['a packed size too small', { name: 'x', data: text, method: 8, packedSize: packed.length - 1 }],
    ['a packed size too large', { name: 'x', data: text, method: 8, packedSize: packed.length + 1 }],
    ['a packed size beyond the file', { name: 'x', data: text, method: 8, packedSize: 0x7fffffff }],
    [
      'bytes after the deflate stream',
      { name: 'x', data: text, method: 8, packed: Buffer.concat([packed, text]) },
    ],
    ['a deflate stream cut short', { name: 'x', data: text, method: 8, packed: packed.subarray(0, -2) }],
    ['no deflate stream', { name: 'x', data: text, method: 8, packed: text }],
    ['another name in its local header', { name: 'x', local: { name: Buffer.from('y') } }],
    ['another size in its local header', { name: 'x', data: text, local: { size: 1 } }],
    ['another packed size in its local header', { name: 'x', data: text, local: { packedSize: 1 } }],
    ['another checksum in its local header', { name: 'x', data: text, local: { crc: 1 } }],
    ['another method in its local header', { name: 'x', data: text, method: 8, local: { method: 0 } }],
    ['other flags in its local header', { name: 'x', data: text, local: { flags: 0x800 } }],
    ['the data of another entry', { name: 'x', data: MANIFEST.data ?? text, offset: 0 }],
    ['a local header beyond the file', { name: 'x', offset: 0x7fffffff }],
    ['bytes before its local header', { name: 'x', gap: Buffer.from('hidden') }],
    ['bytes after its data', { name: 'x', data: text, descriptor: descriptor(text, text.length) }],
    ['a missing descriptor', { name: 'x', data: text, flags: 0x8 }],
    ['a false descriptor', { name: 'x', data: text, flags: 0x8, descriptor: descriptor(text, 1) }],
  ])('refuses %s', async (_, entry) => {
    expect(await refusal([entry])).toBe('agent_package_refused');
  });

  const second = rawZip([MANIFEST]);
  it.each<[string, RawArchive]>([
    ['bytes before the first entry', { prefix: Buffer.from('#!/bin/sh\n') }],
    ['bytes before the central directory', { beforeDirectory: Buffer.from('x') }],
    [
      'bytes at the end of the central directory',
      { afterDirectory: Buffer.from('x'), directorySize: 46 + 10 + 46 + 1 + 1 },
    ],
    ['bytes after the central directory', { afterDirectory: Buffer.from('x') }],
    ['bytes after the end record', { suffix: Buffer.from('x') }],
    ['a comment', { comment: Buffer.from('hello') }],
    ['a second end record', { suffix: second.subarray(-22) }],
    ['a second end record in the comment', { comment: second.subarray(-22) }],
    ['a second ZIP', { suffix: second }],
    ['a second ZIP in front', { prefix: second }],
    ['fewer entries than there are', { entries: 1 }],
    ['more entries than there are', { entries: 3 }],
    ['another count for this disk', { entriesOnDisk: 1 }],
    ['a second disk', { disk: 1 }],
    ['another size of the directory', { directorySize: 1 }],
    ['another offset of the directory', { directoryOffset: 1 }],
    ['a ZIP64 locator', { afterDirectory: LOCATOR, directorySize: 46 + 10 + 46 + 1 + LOCATOR.length }],
  ])('refuses an archive with %s', async (_, archive) => {
    expect(await refusal([{ name: 'x', data: text }], archive)).toBe('agent_package_refused');
  });

  it('refuses what is no ZIP at all', async () => {
    for (const bytes of [
      Buffer.alloc(0),
      text,
      randomBytes(4096),
      second.subarray(0, -1),
      second.subarray(1),
    ]) {
      expect(await rejectionCode(parseAgentPackage(bytes))).toBe('agent_package_refused');
    }
  });

  it('refuses one byte more than 1 MiB packed', async () => {
    const padded = (size: number) => rawZip([MANIFEST, { name: 'x', data: randomBytes(size) }]);
    const overhead = padded(0).length;
    const full = await parseAgentPackage(padded(MAX_PACKED_BYTES - overhead));
    expect(full.zip).toHaveLength(MAX_PACKED_BYTES);
    expect(await rejectionCode(parseAgentPackage(padded(MAX_PACKED_BYTES - overhead + 1)))).toBe(
      'agent_package_refused',
    );
  });

  it('refuses more than 20 MB unpacked, and more than 100:1', async () => {
    // About 60:1, so that the sum is what is refused.
    const data = Buffer.concat(
      Array.from({ length: 1000 }, () => Buffer.concat([randomBytes(20), Buffer.alloc(1980)])),
    );
    const fits = Math.floor(MAX_UNPACKED_BYTES / data.length) - 1;
    const entries = (count: number) =>
      Array.from({ length: count }, (_, i) => ({
        name: `x${i}`,
        data,
        packed: deflateRawSync(data),
        method: 8,
      }));
    expect((await parseAgentPackage(rawZip([MANIFEST, ...entries(fits)]))).files).toHaveLength(fits + 1);
    expect(await refusal(entries(fits + 1))).toBe('agent_package_refused');
    expect(await refusal([{ name: 'bomb', data: Buffer.alloc(1_000_000), method: 8 }])).toBe(
      'agent_package_refused',
    );
  });

  it('refuses more than 10 000 files and directories, those that names imply included', async () => {
    const deep = (packages: number) =>
      Array.from({ length: packages }, (_, i) => ({ name: `${i}/${'a/'.repeat(499)}x` }));
    expect((await parseAgentPackage(rawZip([MANIFEST, ...deep(19)]))).files).toHaveLength(20);
    expect(await refusal(deep(20))).toBe('agent_package_refused');
  });

  it('never inflates more than the central directory says', async () => {
    const bomb = deflateRawSync(Buffer.alloc(10_000_000));
    const zip = rawZip([MANIFEST, { name: 'bomb', packed: bomb, method: 8, size: bomb.length }]);
    const error = await parseAgentPackage(zip).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'agent_package_refused', cause: { code: 'ERR_BUFFER_TOO_LARGE' } });
  });

  it('wants agent.yaml at the top, and reads it by its own rules', async () => {
    const zip = rawZip([{ ...MANIFEST, name: 'sub/agent.yaml' }]);
    expect(await rejectionCode(parseAgentPackage(zip))).toBe('agent_package_refused');
    expect(await rejectionCode(parseAgentPackage(rawZip([])))).toBe('agent_package_refused');
    const broken = rawZip([{ ...MANIFEST, data: Buffer.from('kind: vm\n') }]);
    expect(await rejectionCode(parseAgentPackage(broken))).toBe('agent_manifest_invalid');
  });

  it.each<[string, RegExp, RawEntry[], RawArchive]>([
    ['encryption', /"x": encrypted/, [{ name: 'x', data: text, flags: 0x1 }], {}],
    ['a link', /"x": not a regular file/, [{ name: 'x', data: text, mode: 0o120777 }], {}],
    ['a bomb', /"x": compressed by more than/, [{ name: 'x', data: Buffer.alloc(1e6), method: 8 }], {}],
    ['a gap', /"x": bytes before it/, [{ name: 'x', gap: text }], {}],
    ['a nested archive', /"x": a nested archive \(gzip\)/, [{ name: 'x', data: gzipSync(text) }], {}],
    [
      'ZIP64',
      /archive: ZIP64/,
      [{ name: 'x' }],
      { afterDirectory: LOCATOR, directorySize: 46 + 10 + 46 + 1 + LOCATOR.length },
    ],
  ])('says what is wrong with %s, and where', async (_, message, entries, archive) => {
    const zip = rawZip([MANIFEST, ...entries], archive);
    await expect(parseAgentPackage(zip)).rejects.toThrow(message);
  });

  it('names the entry without letting it write to a terminal', async () => {
    const zip = rawZip([MANIFEST, { name: 'a\x1b]0;x\x07"é', data: text }]);
    const error = await parseAgentPackage(zip).catch((cause: unknown) => cause);
    expect((error as Error).message).toContain('"a\\x1b]0;x\\x07\\x22\\xc3\\xa9"');
    expect((error as Error).message).toMatch(/^[\x20-\x7e]*$/);
  });

  it('opens or refuses by code whatever one byte is changed to', async () => {
    const zip = rawZip([MANIFEST, { name: 'dir/x', data: text, method: 8 }, { name: 'y', data: text }]);
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: zip.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const changed = Buffer.from(zip);
          changed[at] = (changed[at] ?? 0) ^ flip;
          const outcome = await parseAgentPackage(changed).catch((cause: unknown) => cause);
          if (outcome instanceof Error) expect(outcome).toBeInstanceOf(EvaluatorError);
        },
      ),
      { numRuns: 500 },
    );
  });
});
