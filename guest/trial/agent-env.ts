const PYTHON_PATH = 'PYTHONPATH=';

const nameOf = (entry: string) => entry.split('=', 1)[0] ?? '';

/** Every PYTHONPATH that is said becomes one, in the order in which they stand, the image's own last. */
function joinPythonPaths(env: readonly string[], imageEnv: readonly string[]): string[] {
  const isPath = (entry: string) => entry.startsWith(PYTHON_PATH);
  if (!env.some(isPath)) return [...env];
  const folders = [...env, ...imageEnv].filter(isPath).map((entry) => entry.slice(PYTHON_PATH.length));
  return [...env.filter((entry) => !isPath(entry)), `${PYTHON_PATH}${folders.join(':')}`];
}

/**
 * The variables of an agent's exec: what is `ours` about its model access is right whatever else is said, and no
 * PYTHONPATH hides another.
 */
export function execEnv(
  env: readonly string[],
  ours: readonly string[],
  imageEnv: readonly string[],
): string[] {
  const names = new Set(ours.map(nameOf));
  return [...joinPythonPaths(env, imageEnv).filter((entry) => !names.has(nameOf(entry))), ...ours];
}
