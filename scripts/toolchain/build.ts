import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packTar } from '../../guest/engine/tar.ts';
import { staticBusybox } from './busybox.ts';
import { readVerified, sha256Hex, toolchainCache, writeAtomic } from './cache.ts';
import { packageKey, parseRequirements } from './requirements.ts';
import { unzip } from './unzip.ts';
import { fetchWheels } from './wheels.ts';

/** A file of the volume; its folders follow from the path. */
type ToolFile = { path: string; mode: 0o644 | 0o755; bytes: Uint8Array };

const TOOLS = join(import.meta.dirname, '../../guest/tools');

/**
 * Builds the tools volume (spec/03): an uncompressed tar of `busybox`, `entry.sh`, `front/` and `python/`, to be
 * unpacked at /opt/evaluator. The same sources and the same busybox give the same bytes.
 * @returns the SHA-256 of the tar's bytes, lower-case hex.
 * @throws toolchain_unavailable, toolchain_invalid
 */
export async function buildToolchain(options: { outFile: string }): Promise<{ digest: string }> {
  const cache = toolchainCache();
  const busybox = staticBusybox(cache);
  const own = ownFiles();
  const requirements = readFileSync(join(TOOLS, 'requirements.txt'));
  const inputs = sha256Hex(
    [builderDigest(), sha256Hex(busybox), sha256Hex(requirements), ...own.map(fileLine)].join('\n'),
  );
  const built = readBuilt(cache, inputs) ?? (await build(busybox, own, requirements.toString(), cache));
  const digest = sha256Hex(built);
  writeAtomic(options.outFile, built);
  rememberBuilt(cache, inputs, built, digest);
  return { digest };
}

async function build(busybox: Buffer, own: ToolFile[], requirements: string, cache: string): Promise<Buffer> {
  const files: ToolFile[] = [{ path: 'busybox', mode: 0o755, bytes: busybox }, ...own];
  const pinned = parseRequirements(requirements);
  const wheels = fetchWheels(pinned, cache);
  for (const one of pinned) {
    const wheel = wheels.get(packageKey(one));
    if (!wheel) continue;
    for (const file of await unzip(wheel, packageKey(one))) {
      // One folder a package, not one site-packages: a task gets the versions it asked for and no others.
      files.push({ path: `python/${one.name}-${one.version}/${file.path}`, mode: 0o644, bytes: file.bytes });
    }
  }
  return packTar([...foldersOf(files), ...files].sort((a, b) => (a.path < b.path ? -1 : 1)));
}

function foldersOf(files: readonly ToolFile[]): { path: string; directory: true }[] {
  const folders = new Set<string>();
  for (const { path } of files) {
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at));
  }
  return [...folders].map((path) => ({ path, directory: true }));
}

/** entry.sh and front/: what is started is executable, what is read (front/lib) is not. */
function ownFiles(): ToolFile[] {
  const front = readdirSync(join(TOOLS, 'front'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(TOOLS.length + 1));
  return ['entry.sh', ...front.sort()]
    .filter((path) => existsSync(join(TOOLS, path)))
    .map((path) => ({
      path,
      mode: path.startsWith('front/lib/') ? 0o644 : 0o755,
      bytes: readFileSync(join(TOOLS, path)),
    }));
}

/** The builder is an input too: a tar that an older one built is not taken from the cache. */
function builderDigest(): string {
  const sources = readdirSync(import.meta.dirname).sort();
  return sha256Hex(
    sources.map((name) => sha256Hex(readFileSync(join(import.meta.dirname, name)))).join('\n'),
  );
}

function fileLine(file: ToolFile): string {
  return `${file.path} ${file.mode} ${sha256Hex(file.bytes)}`;
}

function readBuilt(cache: string, inputs: string): Buffer | undefined {
  try {
    const digest = readFileSync(join(cache, 'built', `${inputs}.sha256`), 'utf8');
    return readVerified(join(cache, 'built', `${inputs}.tar`), digest);
  } catch {
    return undefined;
  }
}

function rememberBuilt(cache: string, inputs: string, tar: Buffer, digest: string): void {
  if (readBuilt(cache, inputs)) return;
  writeAtomic(join(cache, 'built', `${inputs}.tar`), tar);
  writeAtomic(join(cache, 'built', `${inputs}.sha256`), Buffer.from(digest));
}
