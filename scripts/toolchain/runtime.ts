import { EvaluatorError } from '../../guest/errors.ts';
import { BUILT_AT, confine } from './confine.ts';
import { type DebFiles, readFrom } from './deb.ts';
import { readElf } from './elf.ts';
import { RECIPES, type Recipe } from './recipes.ts';
import type { ToolFile } from './tool-file.ts';

const LIBRARIES = 'usr/lib/x86_64-linux-gnu';
/** What is linked against, and never loaded. */
const SYSROOT = 'runtime/sysroot/';
const LOADER = 'ld-linux-x86-64.so.2';
/** What compiled wheels may ask for, and what glibc loads by name. */
const ALWAYS = [
  ...[LOADER, 'libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1', 'libutil.so.1'],
  ...['libgcc_s.so.1', 'libstdc++.so.6', 'libz.so.1'],
];

/**
 * The volume's own programs, with their loader and exactly the libraries that they and `modules` (shared objects
 * of wheels) need, out of packages: `bin/`, `lib/` and data below `runtime/`.
 * @throws toolchain_invalid when a program or a library is in none of the packages.
 */
export function runtimeFiles(
  debs: readonly DebFiles[],
  groups: ReadonlySet<string>,
  modules: readonly ToolFile[],
): ToolFile[] {
  const files = Object.entries(RECIPES)
    .filter(([group]) => groups.has(group))
    .flatMap(([, recipe]) => [...programs(debs, recipe), ...data(debs, recipe)]);
  return [...files, ...libraries(debs, [...files, ...modules])];
}

function programs(debs: readonly DebFiles[], recipe: Recipe): ToolFile[] {
  const started = recipe.programs.flatMap((path) => {
    const program = programFile(debs, path);
    if (recipe.place === undefined) return [program];
    const folder = recipe.place === 'front' ? 'front' : 'front/installed';
    const names = [nameOf(path), ...(recipe.aliases ?? [])];
    return [program, ...names.map((name) => wrapper(`${folder}/${name}`, nameOf(path), recipe))];
  });
  const helpers = (recipe.helpers ?? []).flatMap((path) => [
    programFile(debs, path),
    wrapper(`runtime/libexec/${nameOf(path)}`, nameOf(path), {}),
  ]);
  return [...started, ...helpers];
}

function programFile(debs: readonly DebFiles[], path: string): ToolFile {
  const found = readFrom(debs, path);
  if (found === null) throw new EvaluatorError('toolchain_invalid', `no locked package holds ${path}`);
  const name = nameOf(path);
  return { path: `runtime/bin/${name}`, mode: 0o755, bytes: confine(name, found.bytes) };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace('x86_64-linux-gnu-', '');
}

/** The command that starts a program: with the volume's loader, whatever the image has or lacks. */
function wrapper(path: string, name: string, recipe: Pick<Recipe, 'prepare' | 'arguments'>): ToolFile {
  const lines = [
    '#!/opt/evaluator/busybox sh',
    '. /opt/evaluator/front/lib/runtime.sh',
    ...(recipe.prepare === undefined ? [] : [recipe.prepare]),
    `own ${[name, ...(recipe.arguments === undefined ? [] : [recipe.arguments]), '"$@"'].join(' ')}`,
  ];
  return { path, mode: 0o755, bytes: Buffer.from(`${lines.join('\n')}\n`) };
}

function data(debs: readonly DebFiles[], recipe: Recipe): ToolFile[] {
  return recipe.data.flatMap(({ from, to, except }) => {
    const paths = new Set(debs.flatMap((deb) => [...deb.keys()]).filter((path) => path.startsWith(from)));
    return [...paths].sort().flatMap((path): ToolFile[] => {
      const rest = path.slice(from.length);
      const found = except.test(rest) ? null : readFrom(debs, path);
      if (found === null) return [];
      const mode = (found.mode & 0o100) !== 0 && isProgram(found.bytes) ? 0o755 : 0o644;
      return [{ path: `runtime/${to}${rest}`, mode, bytes: placed(`runtime/${to}${rest}`, found.bytes) }];
    });
  });
}

/** Data as it is in the volume: a module of Python is loaded as libraries are, but what is linked against is not. */
function placed(path: string, bytes: Buffer): Buffer {
  if (/\/_sysconfigdata_[^/]*\.py$/.test(path)) return relocated(path, bytes);
  return path.startsWith(SYSROOT) ? bytes : confine(path.slice(path.lastIndexOf('/') + 1), bytes);
}

/** What Python knows of its own place: its headers are in the volume, and the image may have others. */
function relocated(path: string, bytes: Buffer): Buffer {
  const prefix = `/opt/evaluator/${path.slice(0, path.indexOf('/lib/'))}`;
  const text = bytes.toString('utf8').replaceAll("'/usr/include/", "'/opt/evaluator/runtime/include/");
  return Buffer.from(text.replaceAll(BUILT_AT, prefix));
}

function isProgram(bytes: Buffer): boolean {
  return readElf(bytes)?.interpreter === true;
}

/** The closure over DT_NEEDED; a library that a wheel brings itself is found there. */
function libraries(debs: readonly DebFiles[], users: readonly ToolFile[]): ToolFile[] {
  const loaded = users.filter(({ path }) => !path.startsWith(SYSROOT));
  const own = new Set(loaded.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)));
  const found = new Map<string, ToolFile>();
  const open = [...ALWAYS.map((soname) => ({ soname, by: 'the runtime' })), ...loaded.flatMap(needsOf)];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { soname, by } = next;
    if (found.has(soname) || own.has(soname)) continue;
    const library = readFrom(debs, `${LIBRARIES}/${soname}`);
    if (library === null)
      throw new EvaluatorError('toolchain_invalid', `${by} needs ${soname}, which no locked package holds`);
    const mode = soname === LOADER ? 0o755 : 0o644;
    const file: ToolFile = { path: `runtime/lib/${soname}`, mode, bytes: confine(soname, library.bytes) };
    found.set(soname, file);
    open.push(...needsOf(file));
  }
  return [...found.values()];
}

function needsOf({ path, bytes }: ToolFile): { soname: string; by: string }[] {
  return (readElf(bytes)?.needed ?? []).map((soname) => ({
    soname,
    by: path,
  }));
}
