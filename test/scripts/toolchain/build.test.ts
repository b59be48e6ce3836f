import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { readTar, type TarFile } from '../../../guest/engine/tar-read.ts';
import { buildBaseToolchain, type Toolchain } from '../../../scripts/toolchain/build.ts';
import { toolchainCache } from '../../../scripts/toolchain/cache.ts';
import { isStaticElf } from '../../../scripts/toolchain/elf.ts';
import { packageKey, parseRequirements } from '../../../scripts/toolchain/requirements.ts';
import { BASE_SELECTION } from '../../../scripts/toolchain/select.ts';
import { readServed } from '../../../scripts/toolchain/served.ts';
import { scratchFolder } from '../../support/scratch.ts';

const CAPS = { totalBytes: 1 << 28, entries: 100_000, depth: 32, timeMs: 60_000 };
const dir = scratchFolder();
const outFile = join(dir, 'tools.tar');
let built: Toolchain;
let files: Map<string, TarFile>;

beforeAll(async () => {
  built = await buildBaseToolchain({ outFile });
  const read = await readTar(Readable.from([readFileSync(outFile)]), CAPS);
  files = new Map(read.map((file) => [file.path, file]));
});

describe('buildBaseToolchain', () => {
  it('returns the SHA-256 of the bytes it wrote, their number, and what is in them', () => {
    const bytes = readFileSync(outFile);
    expect(built.digest).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(built.sizeBytes).toBe(bytes.length);
    expect(built.debian.map(({ name }) => name)).toContain('python3.13-minimal');
    expect(built.python).toContain('pytest==8.4.1');
  });

  it('builds the same bytes again, at another time and in another folder', async () => {
    const again = join(dir, 'again.tar');
    const temporary = join(dir, 'a folder of another name');
    mkdirSync(temporary);
    const cache = toolchainCache();
    vi.stubEnv('XDG_CACHE_HOME', join(dir, 'other'));
    mkdirSync(toolchainCache(), { recursive: true });
    // What was downloaded is shared; what was built is not.
    for (const part of ['debs', 'wheels']) symlinkSync(join(cache, part), join(toolchainCache(), part));
    vi.stubEnv('TMPDIR', temporary);
    try {
      expect(await buildBaseToolchain({ outFile: again })).toEqual(built);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(readFileSync(again).equals(readFileSync(outFile))).toBe(true);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('holds the shell, the entry script, the front, its own programs and the packages, and nothing else', () => {
    const tops = new Set([...files.keys()].map((path) => path.split('/')[0]));
    expect([...tops].sort()).toEqual(['busybox', 'entry.sh', 'front', 'python', 'runtime']);
    expect(isStaticElf(files.get('busybox')?.bytes ?? Buffer.alloc(0))).toBe(true);
    for (const name of ['apt-get', 'curl', 'uvx', 'uv', 'pip', 'pip3', 'pytest', 'python', 'python3']) {
      expect(files.has(`front/${name}`), name).toBe(true);
    }
    expect(files.has('python/pytest-8.4.1/pytest/__init__.py')).toBe(true);
  });

  it('makes executable what is started and nothing else', () => {
    for (const [path, { mode }] of files) {
      const isStarted =
        ['busybox', 'entry.sh', 'runtime/lib/ld-linux-x86-64.so.2'].includes(path) ||
        /^(front|front\/shell|runtime\/bin)\/[^/]+$/.test(path);
      expect(mode, path).toBe(isStarted ? 0o755 : 0o644);
    }
  });

  it('has entries in order, of owner 0 and time 0', () => {
    const tar = readFileSync(outFile);
    const names: string[] = [];
    for (let at = 0; at < tar.length && tar[at] !== 0; ) {
      const field = (from: number, length: number) =>
        tar.toString('latin1', at + from, at + from + length).replace(/\0.*$/s, '');
      for (const [from, length] of [
        [108, 8],
        [116, 8],
        [136, 12],
      ] as const) {
        expect(Number.parseInt(field(from, length), 8)).toBe(0);
      }
      const prefix = field(345, 155);
      names.push(prefix ? `${prefix}/${field(0, 100)}` : field(0, 100));
      at += 512 + Math.ceil(Number.parseInt(field(124, 12), 8) / 512) * 512;
    }
    const bare = names.map((name) => name.replace(/\/$/, ''));
    expect(bare).toEqual([...bare].sort());
  });

  it('starts every front command with the static shell', () => {
    for (const [path, { bytes }] of files) {
      if (!/^(front|front\/shell)\/[^/]+$/.test(path) && path !== 'runtime/bin/python3') continue;
      expect(bytes.toString().split('\n')[0], path).toBe('#!/opt/evaluator/busybox sh');
    }
  });

  it('says what is missing on a cold machine without apt', async () => {
    vi.stubEnv('XDG_CACHE_HOME', join(dir, 'cold'));
    vi.stubEnv('PATH', dir);
    try {
      await expect(buildBaseToolchain({ outFile: join(dir, 'cold.tar') })).rejects.toMatchObject({
        code: 'toolchain_unavailable',
        message: expect.stringContaining('EVALUATOR_DEBIAN_MIRROR'),
      });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe('the package table', () => {
  const pinned = parseRequirements(
    readFileSync(join(import.meta.dirname, '../../../guest/tools/requirements.txt'), 'utf8'),
  );
  const pinnedKeys = new Set(pinned.map(packageKey));

  it('names pinned wheels only, and every pinned wheel', () => {
    const { packages, others } = readServed();
    const tables = [packages, ...others.map((one) => one.packages)];
    const named = new Set(
      tables.flatMap((table) => [...table].flatMap(([key, { needs }]) => [key, ...needs])),
    );
    expect([...named].sort()).toEqual([...pinnedKeys].sort());
  });

  it('lists with each package of every volume all that its metadata requires from Python 3.9 on', () => {
    for (const [key, { needs }] of BASE_SELECTION.served.packages) {
      if (key.startsWith('pytest-json-ctrf==')) continue; // Comes beside a pytest that the task names.
      const present = new Set([key, ...needs].map((one) => one.split('==')[0] ?? ''));
      for (const one of [key, ...needs]) {
        const folder = `python/${one.replace('==', '-')}/`;
        const metadata = [...files].find(
          ([path]) =>
            path.startsWith(folder) && /^[^/]+\.dist-info\/METADATA$/.test(path.slice(folder.length)),
        );
        for (const name of requiredNames(metadata?.[1].bytes.toString() ?? '')) {
          expect(present.has(name), `${key}: ${one} requires ${name}`).toBe(true);
        }
      }
    }
  });
});

const NOT_HERE = /extra\s*==|win32|Windows|python_version\s*<\s*["']3\.[6-9]["']/;

function requiredNames(metadata: string): string[] {
  return metadata
    .split('\n')
    .filter((line) => line.startsWith('Requires-Dist:') && !NOT_HERE.test(line))
    .map((line) => /^Requires-Dist:\s*([A-Za-z0-9._-]+)/.exec(line)?.[1] ?? '')
    .map((name) => name.toLowerCase().replace(/[-_.]+/g, '-'));
}
