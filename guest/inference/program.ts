import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packTar, type TarEntry } from '../engine/tar.ts';
// Nothing of it runs here; an image takes what is imported, and the proxy's program comes along with its types.
import type { Settings } from './proxy/main.ts';
import { PROXY_HOME, SETTINGS_FILE } from './proxy/settings.ts';

/** The proxy's program: Node's own modules and these files of the guest, run as they are. */
export const PROGRAM_FILES = [
  'errors.ts',
  'inference/proxy/main.ts',
  'inference/proxy/meter.ts',
  'inference/proxy/refusal.ts',
  'inference/proxy/reply.ts',
  'inference/proxy/request.ts',
  'inference/proxy/server.ts',
  'inference/proxy/settings.ts',
  'inference/proxy/shape.ts',
  'inference/proxy/upstream.ts',
  'net/model-exchange.ts',
  'wire/foreign-json.ts',
  'wire/pinned-model.ts',
] as const;

const GUEST = join(import.meta.dirname, '..');

/** What the proxy's container starts: a small heap, so that nothing an agent sends makes it a large one. */
export const PROXY_COMMAND = [
  'node',
  '--max-old-space-size=160',
  '--disallow-code-generation-from-strings',
  '--disable-proto=throw',
  `${PROXY_HOME}/inference/proxy/main.ts`,
] as const;

/** A file to be placed into the proxy's container; the path is relative to `/`. */
export interface ProgramFile {
  path: string;
  bytes: Buffer;
  /** Root's alone for what is secret. */
  mode: 0o600 | 0o644;
}

/** Program and settings of one rep's proxy. */
export function proxyFiles(settings: Settings): ProgramFile[] {
  const home = PROXY_HOME.slice(1);
  const text = (value: unknown) => Buffer.from(JSON.stringify(value));
  return [
    // Or Node would look into each file for what kind of module it is.
    { path: `${home}/package.json`, bytes: text({ type: 'module' }), mode: 0o644 },
    { path: `${home}/${SETTINGS_FILE}`, bytes: text(settings), mode: 0o600 },
    ...PROGRAM_FILES.map(
      (path): ProgramFile => ({
        path: `${home}/${path}`,
        bytes: readFileSync(join(GUEST, path)),
        mode: 0o644,
      }),
    ),
  ];
}

/** The same as a tar for `/` of a stopped container. */
export function proxyTar(settings: Settings): Buffer {
  const files = proxyFiles(settings);
  const folders = new Set<string>();
  for (const { path } of files) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1))
      folders.add(path.slice(0, at));
  }
  return packTar([
    { path: './', directory: true },
    ...[...folders].sort().map((path): TarEntry => ({ path, directory: true })),
    ...files,
  ]);
}
