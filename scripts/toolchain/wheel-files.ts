import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { EvaluatorError } from '../../guest/errors.ts';
import { cpuTorch } from './cpu-torch.ts';
import { packageKey, type Requirement } from './requirements.ts';
import type { ToolFile } from './tool-file.ts';
import { type UnzippedFile, unzip } from './unzip.ts';
import { fetchWheels } from './wheels.ts';

// Windows and their fonts: no test has a screen.
const NOT_HEADLESS = /^cv2\/qt\/|\.libs\/libQt5XcbQpa/;

const NOTHING = /(?!)/;

/** What no test imports, by package: it would be most of the volume. */
const NOT_NEEDED: Readonly<Record<string, RegExp>> = {
  'opencv-python': NOT_HEADLESS,
  'opencv-contrib-python': NOT_HEADLESS,
  greenlet: /^greenlet\/tests\//,
  mailman: /^mailman\/(.*\/)?(tests|docs)\//,
  pandas: /^pandas\/tests\//,
  scipy: /\/tests\//,
  // Code for GPUs (cpu-torch.ts), and what extensions are compiled with.
  torch:
    /^torch\/(lib\/libtorch_cuda_|lib\/libcaffe2_nvrtc|bin\/(?!torch_shm)|include\/|share\/|test\/)|\.pyi$/,
  'nvidia-cuda-cupti-cu12': /^nvidia\/(?!cuda_cupti\/lib\/libcupti\.so)/,
  'nvidia-cuda-runtime-cu12': /^nvidia\/(?!cuda_runtime\/lib\/libcudart\.so)/,
  pyarrow: /^pyarrow\/(tests|include|src)\/|\.(pyx|pxd|pxi)$/,
};

/** Where a source archive has its package, if not in a folder of its own name. */
const SDIST_FOLDERS: Readonly<Record<string, string>> = { dkimpy: 'dkim', mailman: 'src/mailman' };

/** Where a package lies below the volume's root: compiled ones once for each Python. */
export function packageFolder({ name, version, python }: Omit<Requirement, 'sha256' | 'form'>): string {
  return `python${python ?? ''}/${name}-${version}/`;
}

/**
 * The files of pinned wheels, each in a folder of its own below `python/`, or `python3.12/` when it was compiled for that
 * one: a task gets the versions that it asked for and no others.
 * @throws toolchain_unavailable, toolchain_invalid
 */
export async function wheelFiles(pinned: readonly Requirement[], cache: string): Promise<ToolFile[]> {
  const wheels = fetchWheels(pinned, cache);
  const all: ToolFile[] = [];
  for (const one of pinned) {
    const wheel = wheels.get(one.sha256);
    if (wheel === undefined)
      throw new EvaluatorError('toolchain_unavailable', `${packageKey(one)} was not fetched`);
    const except = NOT_NEEDED[one.name] ?? NOTHING;
    const files =
      one.form === 'wheel'
        ? await unzip(wheel, packageKey(one), except)
        : await sdistFiles(wheel, one, except);
    for (const { path, bytes } of files) {
      all.push({ path: `${packageFolder(one)}${path}`, mode: 0o644, bytes });
    }
  }
  return cpuTorch(all);
}

/** The package of a source archive of pure Python: NAME-VERSION/NAME/, for most. */
async function sdistFiles(archive: Buffer, one: Requirement, except: RegExp): Promise<UnzippedFile[]> {
  const folder = `${one.name}-${one.version}/${SDIST_FOLDERS[one.name] ?? one.name}/`;
  const below = folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1);
  const files: UnzippedFile[] = [];
  for await (const entry of Readable.from([gunzipSync(archive)]).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    const { name, type } = entry.header;
    const path = name.startsWith(folder) ? name.slice(below.length) : '';
    if (type === 'file' && path !== '' && !except.test(path))
      files.push({ path, bytes: Buffer.concat(chunks) });
  }
  if (files.length === 0)
    throw new EvaluatorError('toolchain_invalid', `${packageKey(one)} holds no folder ${folder}`);
  return files;
}
