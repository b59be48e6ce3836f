import { EvaluatorError } from '../../guest/errors.ts';
import { packageKey, type Requirement } from './requirements.ts';
import type { ToolFile } from './tool-file.ts';
import { unzip } from './unzip.ts';
import { fetchWheels } from './wheels.ts';

/** What no test imports, by package: it would be most of the volume. */
const NOT_NEEDED: Readonly<Record<string, RegExp>> = {
  pandas: /^pandas\/tests\//,
  scipy: /\/tests\//,
  pyarrow: /^pyarrow\/(tests|include|src)\/|\.(pyx|pxd|pxi)$/,
};

/**
 * The files of pinned wheels, each in a folder of its own below `python/`: a task gets the versions that it asked
 * for and no others.
 * @throws toolchain_unavailable, toolchain_invalid
 */
export async function wheelFiles(pinned: readonly Requirement[], cache: string): Promise<ToolFile[]> {
  const wheels = fetchWheels(pinned, cache);
  const files: ToolFile[] = [];
  for (const one of pinned) {
    const wheel = wheels.get(packageKey(one));
    if (wheel === undefined)
      throw new EvaluatorError('toolchain_unavailable', `${packageKey(one)} was not fetched`);
    for (const { path, bytes } of await unzip(wheel, packageKey(one))) {
      if (NOT_NEEDED[one.name]?.test(path)) continue;
      files.push({ path: `python/${one.name}-${one.version}/${path}`, mode: 0o644, bytes });
    }
  }
  return files;
}
