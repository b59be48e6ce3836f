import { createHash } from 'node:crypto';
import { sha256Hex } from '../wire/digest.ts';
import type { TaskFile } from './types.ts';

/** A file as the digests see it: its relative POSIX path and the hex SHA-256 of its content. */
export interface FileDigest {
  path: string;
  sha256: string;
}

const NAMED = new Set(['task.toml', 'instruction.md', 'README.md']);
const COUNTED = /^(?:environment|tests|solution|steps)\//;

/** True for the files that a task package consists of; whatever else lies in its folder is outside it (spec/05). */
export function isPackageFile(path: string): boolean {
  return NAMED.has(path) || COUNTED.test(path);
}

/** True for what the guest may read before the task's key is there. */
export function isPublicFile(path: string): boolean {
  return isPackageFile(path) && !path.startsWith('tests/') && !path.startsWith('solution/');
}

function contentDigest(files: readonly FileDigest[]): string {
  const hash = createHash('sha256');
  // UTF-8 bytes sort like code points; JavaScript's own order is that of UTF-16.
  const sorted = files
    .map((file) => ({ key: Buffer.from(file.path), sha256: file.sha256 }))
    .sort((a, b) => Buffer.compare(a.key, b.key));
  for (const file of sorted) hash.update(file.key).update(`\0${file.sha256}\n`);
  return hash.digest('hex');
}

/** The published content digest of a Harbor task package, hex (spec/05). */
export function sourceDigest(files: readonly FileDigest[]): string {
  return contentDigest(files.filter((file) => isPackageFile(file.path)));
}

/** The source digest without solution/, which no image carries: what a plan pins. */
export function taskDigest(files: readonly FileDigest[]): string {
  return contentDigest(
    files.filter((file) => isPackageFile(file.path) && !file.path.startsWith('solution/')),
  );
}

/** The same over the public half: without tests/ and solution/. */
export function publicDigest(files: readonly FileDigest[]): string {
  return contentDigest(files.filter((file) => isPublicFile(file.path)));
}

/** Hashes files that are in memory. */
export function digestFiles(files: readonly TaskFile[]): FileDigest[] {
  return files.map((file) => ({ path: file.path, sha256: sha256Hex(file.bytes) }));
}
