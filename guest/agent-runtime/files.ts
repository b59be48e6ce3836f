import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The top-level folder of an agent's sandbox in which our own part lies. */
export const RUNTIME_FOLDER = '/agent-runtime';
/** Where the broker's socket is, in the sandbox. */
export const BROKER_SOCKET = '/run/evaluator/broker.sock';

/** One of our own files for the sandbox; the path is relative to `/`. */
interface RuntimeFile {
  path: string;
  bytes: Buffer;
  executable: boolean;
}

let files: readonly RuntimeFile[] | null = null;

/** The bridge and the Python interface of agents, as they are uploaded into every sandbox. */
export function runtimeFiles(): readonly RuntimeFile[] {
  files ??= readdirSync(import.meta.dirname, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.py'))
    .map((entry) => {
      const full = join(entry.parentPath, entry.name);
      const path = full.slice(import.meta.dirname.length + 1);
      return { path: `${RUNTIME_FOLDER.slice(1)}/${path}`, bytes: readFileSync(full), executable: false };
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  return files;
}
