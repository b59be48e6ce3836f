import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importedFiles, namedPackages } from '../../../scripts/images/closure.ts';
import { neededPackages, parseLockfile } from '../../../scripts/images/packages.ts';
import { IMAGE_ROLES, IMAGES } from '../../../scripts/images/roles.ts';
import { isShipped } from '../../../scripts/images/shipped.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Prints every file that is loaded from packages, when the process ends. */
const TRACE = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  const urls = new Set();
  registerHooks({ load(url, context, next) { urls.add(url); return next(url, context); } });
  process.on('exit', () => writeSync(1, [...urls].join('\\n')));
`)}`;

function loadedFiles(entry: string): string[] {
  try {
    execFileSync(process.execPath, ['--import', TRACE, join(ROOT, entry)], {
      stdio: 'pipe',
      encoding: 'utf8',
    });
  } catch (error) {
    const { stdout } = error as { stdout: string };
    const below = `file://${ROOT}/`;
    return stdout.split('\n').flatMap((url) => (url.startsWith(below) ? [url.slice(below.length)] : []));
  }
  throw new Error(`${entry} started without a plan`);
}

describe('isShipped', () => {
  it.each([
    ['zod', 'index.js'],
    ['zod', 'LICENSE'],
    ['zod', 'package.json'],
    ['dockerode', 'lib/proto/auth.proto'],
    ['web-tree-sitter', 'web-tree-sitter.wasm'],
    ['tree-sitter-bash', 'tree-sitter-bash.wasm'],
    ['tree-sitter-bash', 'LICENSE'],
  ])('keeps %s %s', (name, path) => {
    expect(isShipped(name, path)).toBe(true);
  });

  it.each([
    ['zod', 'index.d.ts'],
    ['zod', 'index.d.cts'],
    ['zod', 'src/index.ts'],
    ['yaml', 'README.md'],
    ['pino', 'test/basic.test.js'],
    ['pino', '.github/workflows/ci.yml'],
    ['bare-fs', 'prebuilds/linux-x64/bare-fs.node'],
    ['tree-sitter-bash', 'src/parser.c'],
    ['tree-sitter-bash', 'bindings/node/index.js'],
    ['web-tree-sitter', 'debug/web-tree-sitter.wasm'],
  ])('drops %s %s', (name, path) => {
    expect(isShipped(name, path)).toBe(false);
  });

  it.each(IMAGE_ROLES)('keeps every file that the %s guest loads to start', (role) => {
    const { entry } = IMAGES[role];
    const source = importedFiles(ROOT, entry);
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const lock = parseLockfile(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    const packages = new Set(neededPackages(lock, namedPackages(ROOT, source, Object.keys(dependencies))));
    const loaded = loadedFiles(entry);
    const missing = loaded.filter((path) => {
      const [, place = '', name = '', file = ''] =
        path.match(/^((?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+))\/(.*)$/) ?? [];
      // ssh2 tries one that an installation without optional packages does not have.
      if (lock.packages[place]?.optional) return false;
      return place === '' ? !source.includes(path) : !packages.has(place) || !isShipped(name, file);
    });
    expect(loaded.length).toBeGreaterThan(100);
    expect(missing).toEqual([]);
  });
});
