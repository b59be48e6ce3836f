import { EvaluatorError, isEvaluatorError } from '../../errors.ts';
import { NameRegistry } from '../entry-name.ts';
import type { AgentFile } from '../types.ts';
import { readZip, type ZipLimits } from '../zip-read.ts';

/** Files and directories of one wheel, and of all together: each is a header of a tar. */
const MAX_PATHS = 20_000;
const MAX_PATHS_TOGETHER = 50_000;

/** A wheel's bytes, of a hash that was pinned. */
export interface Wheel {
  filename: string;
  bytes: Buffer;
}

/** Of NAME-VERSION.data, by the folder's name: where its files go. Scripts would be on no PATH. */
const DATA = /^[^/]+\.data\/([^/]+)\//;
const MOVED = new Set(['purelib', 'platlib']);

/** Of the archive reader's messages. */
const PREFIX = /^agent package: /;

function refuse(filename: string, what: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('wheel_refused', `${filename}: ${what}`, { cause });
}

/** Where a wheel's file belongs in the folder of packages; null: it is left out. @throws wheel_refused. */
function placeOf(filename: string, path: string): string | null {
  const scheme = DATA.exec(path)?.[1];
  if (scheme === 'scripts') return null;
  if (scheme !== undefined && !MOVED.has(scheme))
    throw refuse(filename, `${path}: files outside of the packages' folder are not taken`);
  const place = scheme === undefined ? path : path.replace(DATA, '');
  // What an installed one would run at every start of Python, and does nothing where ours lie.
  if (/^[^/]+\.pth$/i.test(place)) throw refuse(filename, `${path}: .pth files are not taken`);
  return place;
}

async function unzip(bytes: Buffer, filename: string, limits: ZipLimits): Promise<AgentFile[]> {
  try {
    return await readZip(bytes, limits);
  } catch (cause) {
    if (!isEvaluatorError(cause, 'agent_package_refused')) throw cause;
    throw refuse(filename, cause.message.replace(PREFIX, ''), cause);
  }
}

/**
 * The files of a wheel as they lie in the folder of packages. Nothing of it is run, and no installer's work is
 * done but the placing of files. A wheel that holds an archive is fine: its hash is pinned.
 * @param maxBytes the most that it may be, unpacked.
 * @throws wheel_refused, naming wheel and entry.
 */
export async function readWheel({ filename, bytes }: Wheel, maxBytes: number): Promise<AgentFile[]> {
  const limits = {
    packedBytes: maxBytes,
    unpackedBytes: maxBytes,
    ratio: Number.POSITIVE_INFINITY,
    paths: MAX_PATHS,
  };
  const files = await unzip(bytes, filename, limits);
  if (!files.some(({ path }) => /^[^/]+\.dist-info\/WHEEL$/.test(path)))
    throw refuse(filename, 'no .dist-info/WHEEL: not a wheel');
  return files.flatMap((file) => {
    const path = placeOf(filename, file.path);
    return path === null ? [] : [{ ...file, path }];
  });
}

/** Two wheels may share a folder, never a file. */
function addNames(registry: NameRegistry, filename: string, files: readonly AgentFile[]): void {
  try {
    for (const { path } of files) registry.add(path);
  } catch (cause) {
    if (!isEvaluatorError(cause, 'agent_package_refused')) throw cause;
    throw refuse(filename, cause.message.replace(PREFIX, ''), cause);
  }
}

/**
 * Looks into all wheels that are to lie in one folder.
 * @throws wheel_refused; dependencies_too_large when together they are larger than `maxBytes`, unpacked.
 */
export async function verifyWheels(wheels: readonly Wheel[], maxBytes: number): Promise<void> {
  const registry = new NameRegistry(MAX_PATHS_TOGETHER);
  let unpacked = 0;
  for (const wheel of wheels) {
    const files = await readWheel(wheel, maxBytes);
    unpacked += files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (unpacked > maxBytes)
      throw new EvaluatorError(
        'dependencies_too_large',
        `${wheel.filename}: with it the packages are more than ${maxBytes} bytes, unpacked`,
      );
    addNames(registry, wheel.filename, files);
  }
}
