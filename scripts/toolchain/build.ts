import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { packTar } from '../../guest/engine/tar.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { readVerified, sha256Hex, toolchainCache, writeAtomic } from './cache.ts';
import { readDeb, readFrom } from './deb.ts';
import { DebianSuite } from './debian.ts';
import { isStaticElf } from './elf.ts';
import { interpreterFiles, interpreterShims } from './interpreter-files.ts';
import type { Interpreter } from './interpreters.ts';
import type { DebianPackage } from './lock.ts';
import { debFiles, type LockPolicy, resolvePackages } from './packages.ts';
import { bytecodeOfAll, requirementsOf } from './pythons.ts';
import { packageKey, parseRequirements, type Requirement } from './requirements.ts';
import { runtimeFiles } from './runtime.ts';
import { BASE_SELECTION, frontTables, type Selection, selectFor } from './select.ts';
import { PYTHONS } from './served.ts';
import { requestsOf } from './survey-script.ts';
import type { ToolFile } from './tool-file.ts';
import { wheelFiles } from './wheel-files.ts';

/** Kept of what was built. */
const KEPT_TARS = 6;

const TOOLS = join(import.meta.dirname, '../../guest/tools');
export const DEBIAN_LOCK = join(TOOLS, 'debian.lock');

/** What was built: the tar's SHA-256 and size, and what is in it. */
export type Toolchain = {
  /** Lower-case hex. */
  digest: string;
  sizeBytes: number;
  /** `served`: other versions than debian.lock names, because the archive has moved on. */
  source: LockPolicy;
  debian: readonly DebianPackage[];
  /** Pythons beside the volume's own. */
  interpreters: readonly Interpreter[];
  /** `name==version`; behind that, of what was compiled for another Python than the volume's own, ` (3.12)`. */
  python: readonly string[];
};

export type ToolchainOptions = { outFile: string; selection: Selection; policy: LockPolicy };

/**
 * Builds the tools volume (spec/03), an uncompressed tar to be unpacked at /opt/evaluator: the static shell, the
 * entry script, the front, and the programs and packages that are selected. The same sources give the same bytes.
 * @throws toolchain_unavailable, toolchain_invalid, toolchain_version_gone
 */
export async function buildToolchain(options: ToolchainOptions): Promise<Toolchain> {
  const cache = toolchainCache();
  const { selection, policy } = options;
  const openArchive = () => new DebianSuite();
  const lock = readFileSync(DEBIAN_LOCK, 'utf8');
  const { packages, source } = resolvePackages(
    lock,
    new Set(['base', ...selection.groups]),
    policy,
    cache,
    openArchive,
  );
  const wheels = pinnedWheels(selection);
  const interpreters = selection.served.others.map(({ interpreter }) => interpreter);
  const own = ownFiles(selection, interpreters);
  const inputs = sha256Hex(
    [
      builderDigest(),
      ...packages.map(({ name, sha256 }) => `${name} ${sha256}`),
      ...interpreters.map(({ artifact, sha256 }) => `${artifact} ${sha256}`),
      ...wheels.map((one) => `${packageKey(one)} ${one.sha256}`),
      ...own.map(fileLine),
    ].join('\n'),
  );
  const tar = readBuilt(cache, inputs) ?? (await build(packages, wheels, own, selection, cache));
  const digest = sha256Hex(tar);
  writeAtomic(options.outFile, tar);
  rememberBuilt(cache, inputs, tar, digest);
  const python = wheels.map((one) => `${packageKey(one)}${one.python === null ? '' : ` (${one.python})`}`);
  return { digest, sizeBytes: tar.length, source, debian: packages, interpreters, python };
}

/** The smallest volume: what nearly every test script asks for. */
export function buildBaseToolchain(options: { outFile: string }): Promise<Toolchain> {
  return buildToolchain({ ...options, selection: BASE_SELECTION, policy: 'served' });
}

/** The volume for these tasks: beside what is always there, what of their `test.sh` is served. */
export function buildTaskToolchain(options: {
  outFile: string;
  scripts: readonly string[];
  policy: LockPolicy;
}): Promise<Toolchain> {
  const { scripts, ...rest } = options;
  return buildToolchain({ ...rest, selection: selectFor(scripts.map(requestsOf)) });
}

async function build(
  packages: readonly DebianPackage[],
  wheels: readonly Requirement[],
  own: readonly ToolFile[],
  selection: Selection,
  cache: string,
): Promise<Buffer> {
  const debs = await Promise.all(debFiles(packages, cache).map(readDeb));
  for (const { interpreter } of selection.served.others)
    debs.push(await interpreterFiles(interpreter, cache));
  const busybox = readFrom(debs, 'usr/bin/busybox')?.bytes;
  if (busybox === undefined || !isStaticElf(busybox))
    throw new EvaluatorError('toolchain_invalid', 'busybox-static holds no static amd64 executable');
  const python = await wheelFiles(wheels, cache);
  const runtime = runtimeFiles(debs, new Set(['base', ...selection.groups]), python);
  const files: ToolFile[] = [{ path: 'busybox', mode: 0o755, bytes: busybox }, ...own, ...runtime, ...python];
  const all = [...files, ...bytecodeOfAll(runtime, python, wheels, selection)];
  return packTar([...foldersOf(all), ...all].sort((a, b) => (a.path < b.path ? -1 : 1)));
}

function pinnedWheels(selection: Selection): Requirement[] {
  const text = readFileSync(join(TOOLS, 'requirements.txt'), 'utf8');
  return requirementsOf(parseRequirements(text), selection);
}

function foldersOf(files: readonly ToolFile[]): { path: string; directory: true }[] {
  const folders = new Set<string>();
  for (const { path } of files) {
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at));
  }
  return [...folders].map((path) => ({ path, directory: true }));
}

/** entry.sh, front/ and ours of the runtime: what is started is executable, what is read is not. */
function ownFiles(selection: Selection, interpreters: readonly Interpreter[]): ToolFile[] {
  const paths = ['entry.sh', ...filesBelow('front'), ...filesBelow('runtime')];
  const files = paths.map((path): ToolFile => {
    const isStarted = path === 'entry.sh' || /^(front|front\/shell|runtime\/bin)\/[^/]+$/.test(path);
    const text = [join(TOOLS, path), ...(interpreters.length > 0 ? [join(PYTHONS, path)] : [])];
    const bytes = Buffer.concat(text.filter((one) => existsSync(one)).map((one) => readFileSync(one)));
    return { path, mode: isStarted ? 0o755 : 0o644, bytes };
  });
  const tables = frontTables(selection);
  const sitecustomize = readFileSync(join(TOOLS, 'runtime/lib/python3.13/sitecustomize.py'));
  return [
    ...files.filter(({ path }) => tables.every((table) => table.path !== path)),
    ...tables,
    ...interpreters.flatMap((one) => interpreterShims(one, sitecustomize)),
  ];
}

function filesBelow(folder: string): string[] {
  if (!existsSync(join(TOOLS, folder))) return [];
  return readdirSync(join(TOOLS, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(TOOLS.length + 1))
    .sort();
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
  const folder = join(cache, 'built');
  writeAtomic(join(folder, `${inputs}.tar`), tar);
  writeAtomic(join(folder, `${inputs}.sha256`), Buffer.from(digest));
  dropOldest(folder);
}

/** Each change of a source makes another tar of some 100 MB: those built last are enough. */
function dropOldest(folder: string): void {
  const builtAt = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const tars = readdirSync(folder).filter((name) => name.endsWith('.tar'));
  const oldest = tars.sort((a, b) => builtAt(b) - builtAt(a)).slice(KEPT_TARS);
  for (const name of oldest) {
    rmSync(join(folder, name.replace(/tar$/, 'sha256')), { force: true });
    rmSync(join(folder, name), { force: true });
  }
}
