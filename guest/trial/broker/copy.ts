import { basename, dirname, normalize } from 'node:path/posix';
import { Readable } from 'node:stream';
import type { Engine, PathStat } from '../../engine/port.ts';
import { encodeHeader } from '../../engine/tar-encode.ts';
import { type FilterEnd, filterTar } from '../../engine/tar-filter.ts';
import { looksCompressed } from '../../engine/tar-name.ts';
import { type Answer, refusal, type TransferCall } from './protocol.ts';
import { type Allowance, TransferBudget } from './transfer-budget.ts';

/** Of one transfer. */
const MAX_ENTRIES = 20_000;
const MAX_DEPTH = 64;
const MAX_BYTES = 512 * 1024 * 1024;
const WITHIN_MS = 120_000;
/** Mounts: the engine's archive has nothing of them, and what is written below one is lost without a word. */
const MOUNTED = /^\/(dev|proc|sys)(\/|$)/;

type Files = Pick<Engine, 'statPath' | 'getArchive' | 'putArchive'>;

/** A way between two containers of one rep. */
export interface Route {
  from: string;
  to: string;
}

interface Found {
  path: string;
  stat: PathStat;
}

/** What is at `path`, through a link; the engine tells where all links together lead. */
async function find(engine: Files, containerId: string, given: string): Promise<Found | null> {
  // As the engine reads it: `..` is what stands before it, whatever a link says.
  const path = normalize(given).replace(/\/$/, '') || '/';
  const stat = await engine.statPath(containerId, path);
  if (stat === null || stat.linkTarget === '') return stat && { path, stat };
  const target = await engine.statPath(containerId, stat.linkTarget);
  return target && { path: stat.linkTarget, stat: target };
}

/** Where a copy goes: below a directory that is there, through directories that are not yet. */
interface Place {
  anchor: string;
  missing: readonly string[];
  name: string;
}

async function placeOf(engine: Files, containerId: string, path: string): Promise<Place | string> {
  const missing: string[] = [];
  for (let parent = dirname(path); ; parent = dirname(parent)) {
    const found = await find(engine, containerId, parent);
    if (found?.stat.isDirectory)
      return { anchor: found.path, missing: missing.reverse(), name: basename(path) };
    if (found !== null || parent === '/') return `${parent} is no directory`;
    missing.push(basename(parent));
  }
}

/** A file goes into a directory of the target's name, if there is one; a directory's content becomes part of it. */
async function targetPlace(
  engine: Files,
  to: string,
  { target, what }: TransferCall,
  source: Found,
): Promise<Place | string> {
  const there = await find(engine, to, target);
  if (what === 'directory') {
    if (there !== null && !there.stat.isDirectory) return `${target} is no directory`;
    if (there?.path === '/') return 'name a directory below /';
    if (there !== null) return { anchor: dirname(there.path), missing: [], name: basename(there.path) };
    const place = await placeOf(engine, to, normalize(target).replace(/\/$/, ''));
    return typeof place === 'string' ? place : { ...place, missing: [...place.missing, place.name] };
  }
  if (there?.stat.isDirectory || target.endsWith('/'))
    return placeOf(engine, to, normalize(`${there?.path ?? target}/x`)).then((place) =>
      typeof place === 'string' ? place : { ...place, name: basename(source.path) },
    );
  return placeOf(engine, to, there?.path ?? normalize(target));
}

/** The path below the anchor of what is copied; of a directory that is not there yet, `missing` ends with it. */
function newRootOf({ missing, name }: Place, { what }: TransferCall): string {
  const made = what === 'directory' && missing.length > 0;
  return (made ? missing : [...missing, name]).join('/');
}

const directoryHeader = (name: string) =>
  encodeHeader({ name: Buffer.from(`${name}/`), type: '5', mode: 0o755, uid: 0, gid: 0, mtime: 0, size: 0 });

/** Directories of ours alone: an entry for one that is there would reset its mode (spec/03, 3). */
async function* withDirectories(directories: readonly string[], tar: Readable): AsyncGenerator<Buffer> {
  for (const [index] of directories.entries())
    yield directoryHeader(directories.slice(0, index + 1).join('/'));
  yield* tar;
}

/** What of a transfer's source can be sent, or why nothing can. */
async function sourceOf(
  engine: Files,
  from: string,
  { source, what }: TransferCall,
): Promise<Found | string> {
  const found = await find(engine, from, source);
  if (found === null) return `${source} is not there`;
  if (MOUNTED.test(found.path)) return `${source} is on a mount, of which nothing can be copied`;
  if (what === 'file') return found.stat.isRegularFile ? found : `${source} is no regular file`;
  return found.stat.isDirectory && found.path !== '/' ? found : `${source} is no directory below /`;
}

/**
 * Copies a file, or what is in a directory, from one container of a rep to the other: regular files and
 * directories, streamed, within the allowance and the caps of one transfer. Links and special files are left out.
 * @throws engine_*.
 */
export async function copyBetween(
  engine: Files,
  { from, to }: Route,
  call: TransferCall,
  allowance: Allowance,
  signal: AbortSignal,
): Promise<Answer> {
  const source = await sourceOf(engine, from, call);
  if (typeof source === 'string') return refusal('not_found', source);
  const place = await targetPlace(engine, to, call, source);
  if (typeof place === 'string') return refusal('refused', place);
  if (MOUNTED.test(`${place.anchor}/${newRootOf(place, call)}`.replace('//', '/')))
    return refusal('refused', `${call.target} is on a mount, to which nothing can be copied`);
  const newRoot = newRootOf(place, call);
  if (looksCompressed(Buffer.from(newRoot)))
    return refusal('refused', `${newRoot}: such a name is not taken`);
  const budget = new TransferBudget({ bytes: MAX_BYTES, entries: MAX_ENTRIES }, allowance);
  const archive = await engine.getArchive(from, source.path);
  const { tar, end } = filterTar(archive, {
    budget,
    depth: MAX_DEPTH,
    root: basename(source.path),
    newRoot,
    ...(call.what === 'directory' ? { top: 'left_out' as const } : {}),
  });
  const cutOff = () => void archive.destroy();
  const within = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)]);
  within.addEventListener('abort', cutOff, { once: true });
  try {
    const upload = Readable.from(withDirectories(place.missing, tar), { objectMode: false });
    await engine.putArchive(to, place.anchor, upload);
  } catch (error) {
    cutOff();
    tar.destroy();
    // An archive that was cut off is refused by the engine too: the reason for the cut is the reason.
    if ((await end) === 'whole') throw error;
  } finally {
    within.removeEventListener('abort', cutOff);
  }
  return answerOf(await end, budget.moved);
}

function answerOf(end: FilterEnd, bytes: number): Answer {
  if (end === 'whole') return { bytes };
  if (end === 'bytes') return refusal('limit', 'more bytes than transfers may still have');
  if (end === 'refused')
    return refusal('limit', `more than ${MAX_ENTRIES} entries, ${MAX_DEPTH} levels, or odd names`);
  return refusal('failed', 'what was read changed under way, or the call was ended');
}
