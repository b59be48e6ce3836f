import { EvaluatorError } from '../errors.ts';

// C0 and C1 controls, bidirectional overrides, zero-width and line separators: a name must show what it is.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/u;
const MAX_COMPONENT_BYTES = 255;
const MAX_PATH_BYTES = 1024;

function problemOf(path: string): string | null {
  if (path === '') return 'is empty';
  if (path.startsWith('/')) return 'is absolute';
  if (UNSAFE.test(path)) return 'has control, invisible or backslash characters';
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`;
  for (const component of path.split('/')) {
    if (component === '' || component === '.' || component === '..')
      return 'leaves the folder or is not normal';
    if (Buffer.byteLength(component) > MAX_COMPONENT_BYTES)
      return `has a component longer than ${MAX_COMPONENT_BYTES} bytes`;
  }
  return null;
}

/** What two names are compared by: those that some file system would take for the same one (spec/05). */
function folded(path: string): string {
  return path.normalize('NFC').toLowerCase().toUpperCase().normalize('NFC');
}

/**
 * Checks the relative POSIX paths of one task's files.
 * @param where how messages call the folder.
 * @throws task_file_name (escapes, control characters, too long), task_file_collision (equal after NFC and
 * case folding, directories included).
 */
export function verifyFileNames(paths: readonly string[], where: string): void {
  const seen = new Map<string, { path: string; isFile: boolean }>();
  for (const path of paths) {
    const problem = problemOf(path);
    if (problem !== null)
      throw new EvaluatorError(
        'task_file_name',
        `${where}: the name ${JSON.stringify(path.slice(0, 200))} ${problem}`,
      );
    const components = path.split('/');
    for (let depth = 1; depth <= components.length; depth++) {
      const prefix = components.slice(0, depth).join('/');
      const isFile = depth === components.length;
      const other = seen.get(folded(prefix));
      if (other === undefined) seen.set(folded(prefix), { path: prefix, isFile });
      else if (other.path !== prefix || other.isFile || isFile)
        throw new EvaluatorError(
          'task_file_collision',
          `${where}: ${JSON.stringify(other.path)} and ${JSON.stringify(prefix)} are one name on some file systems; rename one`,
        );
    }
  }
}
