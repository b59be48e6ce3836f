import { readElf } from './elf.ts';
import { readSymbols } from './elf-symbols.ts';
import { standInLibrary } from './stand-in-library.ts';
import type { ToolFile } from './tool-file.ts';

/** Where torch looks for libraries first. */
const LIBRARIES = /^python\/torch-[^/]+\/torch\/lib\//;
/** Those of CUDA that do not need a GPU in order to say that there is none. */
const CUDA_LIBRARY = /^python\/nvidia-[^/]+\/nvidia\/.*\/(lib(?:cudart|cupti)\.so[^/]*)$/;
/** Of its companions, what they are called and how the names of their functions begin. */
const PREFIXES = [
  ['libcudnn.so', 'cudnn'],
  ['libcufile.so', 'cuFile'],
  ['libcusparseLt.so', 'cusparseLt'],
] as const;
/** c10d::get_gil_checker(): Python's part of torch leaves a function there on loading. */
const PLACES = new Set(['_ZN4c10d15get_gil_checkerEv']);
const GPU_LIBRARY = 'libtorch_cuda.so';

/**
 * PyTorch without a GPU's code, which is most of it: its own libraries for the CPU are as its authors built them. Those
 * for CUDA, which they cannot be loaded without, are stand-ins with names and nothing else, and so torch knows of no
 * GPU, as in a build for CPUs alone. Files of anything else are returned as they are.
 */
export function cpuTorch(files: readonly ToolFile[]): ToolFile[] {
  const folder = files.map(({ path }) => LIBRARIES.exec(path)?.[0]).find((one) => one !== undefined);
  if (folder === undefined) return [...files];
  const placed = files.map((file): ToolFile => {
    const name = CUDA_LIBRARY.exec(file.path)?.[1];
    return name === undefined ? file : { ...file, path: `${folder}${name}` };
  });
  const isOwn = (path: string) => /^python\/(torch|nvidia)-/.test(path) && /\.so(\.|$)/.test(path);
  const gpu = placed.filter(({ path }) => path === `${folder}${GPU_LIBRARY}`);
  const kept = placed.filter((file) => !gpu.includes(file));
  const own = kept.filter(({ path }) => isOwn(path));
  const open = own.flatMap(({ bytes }) => readSymbols(bytes).open);
  const ofGpu = new Set(gpu.flatMap(({ bytes }) => readSymbols(bytes).defined));
  const there = new Set(own.map(({ path }) => nameOf(path)));
  const missing = new Set(
    own.flatMap(({ bytes }) => readElf(bytes)?.needed ?? []).filter((name) => !there.has(name)),
  );
  const standIns = [...missing].sort().flatMap((soname): ToolFile[] => {
    const prefix = PREFIXES.find(([start]) => soname.startsWith(start))?.[1];
    if (prefix === undefined && soname !== GPU_LIBRARY) return [];
    const names = open.filter((name) => (prefix === undefined ? ofGpu.has(name) : name.startsWith(prefix)));
    return [{ path: `${folder}${soname}`, mode: 0o644, bytes: standInLibrary(soname, names, PLACES) }];
  });
  return [...kept, ...standIns];
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
