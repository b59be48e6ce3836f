import { withDeadline } from '../engine/deadline.ts';
import type { Engine } from '../engine/port.ts';
import { packTar, type TarEntry } from '../engine/tar.ts';
import { type FilterBudget, type FilterEnd, filterTar } from '../engine/tar-filter.ts';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { RepFailed } from './faults.ts';
import type { Sandbox } from './sandbox.ts';

/** Below 10⁵ tiny files, and many times what a task's answer has. */
const MAX_ENTRIES = 50_000;
const MAX_DEPTH = 100;
/** Below the deadline of an upload, so that it is this one that ends it. */
const CARRY_WITHIN_MS = 240_000;

/** What is carried over, and how much of it at the most. */
export interface CarryOrder {
  /** Absolute paths, none below another. */
  paths: readonly string[];
  /** storage_mb, in bytes. */
  storageBytes: number;
}

type From = Pick<Sandbox, 'containerId'>;
type To = Pick<Sandbox, 'containerId' | 'secretPath'>;
type Archives = Pick<Engine, 'statPath' | 'getArchive' | 'putArchive'>;

/**
 * Copies the regular files and directories below each path from a dead agent's container into a fresh, stopped
 * one, below its secret path: entry.sh puts them in the place of the image's own (spec/03, artifact). Streams;
 * follows no link. A path that is absent, or a link, is carried over as absent.
 * @throws RepFailed: `disk_limit` for more bytes than storage_mb, `malformed_output` for too many members or too
 * deep ones; engine_*.
 */
export async function carryArtifacts(
  engine: Archives,
  from: From,
  to: To,
  { paths, storageBytes }: CarryOrder,
): Promise<void> {
  const root = `${to.secretPath.slice(1)}/artifacts`;
  await engine.putArchive(to.containerId, '/', frame(root, paths));
  const budget: FilterBudget = { bytes: storageBytes, entries: MAX_ENTRIES };
  await withDeadline('carrying artifacts over', CARRY_WITHIN_MS, async (signal) => {
    for (const path of paths) {
      signal.throwIfAborted();
      if (await isReal(engine, from.containerId, path))
        await carryPath(engine, from, to, path, budget, signal);
    }
  });
}

/** The folders that the paths hang in, and the paths themselves, for entry.sh to read. */
function frame(root: string, paths: readonly string[]): Buffer {
  const parents = new Set<string>();
  for (const path of paths) {
    for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1))
      parents.add(path.slice(0, at));
  }
  const lines = Buffer.from(paths.map((path) => `${path}\n`).join(''));
  return packTar([
    { path: './', directory: true },
    { path: root.slice(0, root.indexOf('/')), directory: true },
    { path: root, directory: true },
    ...[...parents].sort().map((path): TarEntry => ({ path: `${root}${path}`, directory: true })),
    { path: `${root}.paths`, bytes: lines, mode: 0o644 },
  ]);
}

/** A regular file or directory, in real directories: the engine would follow a link on the way. */
async function isReal(engine: Archives, containerId: string, path: string): Promise<boolean> {
  for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1)) {
    const parent = await engine.statPath(containerId, path.slice(0, at));
    if (parent?.isDirectory !== true) return false;
  }
  const found = await engine.statPath(containerId, path);
  return found !== null && (found.isDirectory || found.isRegularFile);
}

async function carryPath(
  engine: Archives,
  from: From,
  to: To,
  path: string,
  budget: FilterBudget,
  signal: AbortSignal,
): Promise<void> {
  const source = await engine.getArchive(from.containerId, path).catch((error) => {
    // What lies on a tmpfs is not there for the engine's archive.
    if (isEvaluatorError(error, 'engine_not_found')) return null;
    throw error;
  });
  if (source === null) return;
  const { tar, end } = filterTar(source, {
    budget,
    depth: MAX_DEPTH,
    root: path.slice(path.lastIndexOf('/') + 1),
    newRoot: `${to.secretPath.slice(1)}/artifacts${path}`,
  });
  signal.addEventListener('abort', () => source.destroy(), { once: true });
  try {
    await engine.putArchive(to.containerId, '/', tar);
  } catch (error) {
    source.destroy();
    tar.destroy();
    verifyEnd(await end, error);
  }
  verifyEnd(await end, null);
}

/** An archive that was cut off is refused by the engine too: the reason for the cut is the reason. */
function verifyEnd(end: FilterEnd, failure: unknown): void {
  if (end === 'bytes') throw new RepFailed('disk_limit');
  if (end === 'refused') throw new RepFailed('malformed_output');
  if (failure !== null) throw failure;
  if (end === 'broken')
    throw new EvaluatorError('engine_error', 'carrying artifacts over: the archive broke off');
}
