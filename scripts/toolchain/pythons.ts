import { EvaluatorError } from '../../guest/errors.ts';
import { bytecodeOf } from './bytecode.ts';
import { interpreterFolder } from './interpreter-files.ts';
import { OWN_PYTHON } from './interpreters.ts';
import { packageKey, type Requirement } from './requirements.ts';
import type { Selection } from './select.ts';
import type { ToolFile } from './tool-file.ts';
import { packageFolder } from './wheel-files.ts';

/** The pinned packages of a volume: what was compiled for one Python is for no other. */
export function requirementsOf(pinned: readonly Requirement[], selection: Selection): Requirement[] {
  return pinned.filter((one) => pythonsWith(one, pinned, selection).length > 0);
}

/** The Pythons of a volume that load a pinned package. */
function pythonsWith(one: Requirement, pinned: readonly Requirement[], selection: Selection): string[] {
  const key = packageKey(one);
  const others = [...selection.otherWheels].flatMap(([python, wheels]) => (wheels.has(key) ? [python] : []));
  if (one.python !== null) return others.filter((python) => python === one.python);
  const hasOwn = (python: string) =>
    pinned.some((other) => packageKey(other) === key && other.python === python);
  return [...(selection.wheels.has(key) ? [OWN_PYTHON] : []), ...others.filter((python) => !hasOwn(python))];
}

/**
 * Bytecode of the library and the packages of each Python of a volume, made by itself.
 * @param runtime of the volume. @param packages with their files. @throws toolchain_*
 */
export function bytecodeOfAll(
  runtime: readonly ToolFile[],
  packages: readonly ToolFile[],
  pinned: readonly Requirement[],
  selection: Selection,
): ToolFile[] {
  const folders = [...selection.otherWheels.keys()].map(interpreterFolder);
  const own = {
    python: OWN_PYTHON,
    runtime: runtime.filter(({ path }) => !folders.some((folder) => path.startsWith(folder))),
    compiler: { program: 'bin/python3.13', self: 'bin/python3' },
  };
  const others = [...selection.otherWheels.keys()].map((python) => ({
    python,
    runtime: runtime.filter(({ path }) => !path.startsWith(`runtime/lib/python${OWN_PYTHON}/`)),
    compiler: { program: `bin/python${python}`, self: `python${python}/bin/python3` },
  }));
  return [own, ...others].flatMap(({ python, runtime: library, compiler }) => {
    const places = pinned
      .filter((one) => pythonsWith(one, pinned, selection).includes(python))
      .map(packageFolder);
    const loaded = packages.filter(({ path }) => places.some((place) => path.startsWith(place)));
    verifyLoadable(python, loaded);
    return bytecodeOf([...library, ...loaded], compiler);
  });
}

/** @throws toolchain_invalid for a module that was compiled for another Python: it would be missing without a word. */
function verifyLoadable(python: string, files: readonly ToolFile[]): void {
  const tag = `.cpython-${python.replace('.', '')}-`;
  const foreign = files.find(({ path }) => /\.cpython-\d+-[^/]*\.so$/.test(path) && !path.includes(tag));
  if (foreign !== undefined)
    throw new EvaluatorError(
      'toolchain_invalid',
      `${foreign.path} is not compiled for Python ${python}: requirements.txt has to pin another wheel for it`,
    );
}
