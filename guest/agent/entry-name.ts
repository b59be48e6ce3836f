import { refused, shownName } from './refuse.ts';

const MAX_COMPONENT_BYTES = 255;
const MAX_PATH_BYTES = 1024;
/** Controls, format characters (bidi overrides, zero-width), private and unassigned ones, line and paragraph separators. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * Decodes the name of a ZIP entry to a relative POSIX path; a directory's keeps its trailing slash.
 * @throws agent_package_refused on names that two systems could read differently, or that leave the package.
 */
export function decodeEntryName(raw: Uint8Array): string {
  const shown = shownName(raw);
  let name: string;
  try {
    name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw);
  } catch (cause) {
    throw refused(shown, 'its name is not UTF-8', { cause });
  }
  if (raw.byteLength > MAX_PATH_BYTES)
    throw refused(shown, `its name is longer than ${MAX_PATH_BYTES} bytes`);
  if (INVISIBLE.test(name)) throw refused(shown, 'its name has control or invisible characters');
  if (name.includes('\\')) throw refused(shown, 'its name has a backslash');
  if (name.startsWith('/')) throw refused(shown, 'its name is absolute');
  const components = (name.endsWith('/') ? name.slice(0, -1) : name).split('/');
  for (const component of components) {
    if (component === '' || component === '.' || component === '..') {
      throw refused(shown, 'its name has an empty, "." or ".." component');
    }
    if (Buffer.byteLength(component) > MAX_COMPONENT_BYTES) {
      throw refused(shown, `its name has a component longer than ${MAX_COMPONENT_BYTES} bytes`);
    }
  }
  return name;
}

/** Equal for names that a case-insensitive or normalising file system takes for one. */
function foldName(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}

/** Remembers every path of an archive, directories on the way included, and refuses clashes. */
export class NameRegistry {
  readonly #maxPaths: number;
  readonly #seen = new Map<string, { path: string; kind: 'file' | 'directory' | 'implied' }>();

  /** @param maxPaths files and directories: every one is a header of a tar. */
  constructor(maxPaths: number) {
    this.#maxPaths = maxPaths;
  }

  /**
   * @throws agent_package_refused when the name, or one equal to it after folding, was there before, and when
   * there are too many.
   */
  add(name: string): void {
    const shown = shownName(Buffer.from(name));
    const isDirectory = name.endsWith('/');
    const components = (isDirectory ? name.slice(0, -1) : name).split('/');
    for (let depth = 1; depth <= components.length; depth++) {
      const path = components.slice(0, depth).join('/');
      const kind = depth < components.length ? 'implied' : isDirectory ? 'directory' : 'file';
      const before = this.#seen.get(foldName(path));
      if (before !== undefined && before.path !== path) {
        throw refused(shown, 'its name equals another after normalisation or case folding');
      }
      if (before?.kind === 'file' && kind !== 'file')
        throw refused(shown, 'a directory of its path is a file');
      if (before !== undefined && kind === 'file') throw refused(shown, 'its name is there twice');
      if (before?.kind === 'directory' && kind === 'directory')
        throw refused(shown, 'its name is there twice');
      if (before === undefined || kind === 'directory') this.#seen.set(foldName(path), { path, kind });
      if (this.#seen.size > this.#maxPaths)
        throw refused('archive', `more than ${this.#maxPaths} files and directories`);
    }
  }
}
