import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isOwnerAlive, newSession } from '../../guest/trial/labels.ts';

const PREFIX = 'cvm-eval-';
const NAME = /^cvm-eval-[A-Za-z0-9]{6}$/;
/** Which process a folder belongs to, as objects on an engine say it. */
const OWNER = '.owner';

/** A folder below `root` for sockets and keys of one run, which says whose it is. */
export function makeScratch(root: string): string {
  const folder = mkdtempSync(join(root, PREFIX));
  writeFileSync(join(folder, OWNER), newSession(null).owner, { mode: 0o600, flag: 'wx' });
  return folder;
}

const never = async () => false;

/** Only what this user made: who else has a folder of that name says in it what they like. */
async function isAbandoned(folder: string): Promise<boolean> {
  try {
    const found = lstatSync(folder);
    if (!found.isDirectory() || found.uid !== process.getuid?.()) return false;
    const owner = join(folder, OWNER);
    // Without one it may have been made a moment ago.
    if (!lstatSync(owner).isFile()) return false;
    return !(await isOwnerAlive(readFileSync(owner, 'ascii'), never));
  } catch {
    return false;
  }
}

/**
 * Removes the scratch folders below `root` whose process is gone: a killed run leaves its keys.
 * @returns how many there were.
 */
export async function removeAbandoned(root: string): Promise<number> {
  let removed = 0;
  for (const name of readdirSync(root).filter((entry) => NAME.test(entry))) {
    const folder = join(root, name);
    if (!(await isAbandoned(folder))) continue;
    try {
      rmSync(folder, { recursive: true, force: true });
      removed++;
    } catch {
      // Another run is at it.
    }
  }
  return removed;
}
