import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../guest/wire/digest.ts';

/**
 * A digest of the guest's source and lockfile. A local run has no image: this stands in its place, so that
 * the RESULT still says which code ran.
 */
export function guestSourceDigest(root: string): string {
  const files = readdirSync(join(root, 'guest'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const lines = [...files, join(root, 'package-lock.json')]
    .map((path) => `${path.slice(root.length + 1)}\0${sha256Hex(readFileSync(path))}\n`)
    .sort();
  return sha256Hex(lines.join(''));
}
