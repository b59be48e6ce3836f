import { createHash, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/** One call hashes, reads or writes less than 2 GiB, and a volume for many tasks is more. */
const PIECE_BYTES = 1 << 30;

/** Lower-case hex SHA-256 of `bytes`. */
export function sha256Hex(bytes: Uint8Array | string): string {
  const hash = createHash('sha256');
  for (const piece of typeof bytes === 'string' ? [bytes] : piecesOf(bytes)) hash.update(piece);
  return hash.digest('hex');
}

function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.length / PIECE_BYTES);
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
  );
}

/** The folder that keeps downloads and built tars between runs: `$XDG_CACHE_HOME` or `~/.cache`. */
export function toolchainCache(env: NodeJS.ProcessEnv = process.env): string {
  const base = env.XDG_CACHE_HOME;
  // A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
  return join(base && isAbsolute(base) ? base : join(homedir(), '.cache'), 'cvm-evaluator', 'toolchain');
}

/** Writes a file whole or not at all: two builds at a time must not read each other's half. */
export function writeAtomic(path: string, bytes: Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = openSync(draft, 'wx', 0o644);
  try {
    for (const piece of piecesOf(bytes))
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}

/** The file's bytes if it is there and has that SHA-256; a file with another one is as good as none. */
export function readVerified(path: string, sha256: string): Buffer | undefined {
  let bytes: Buffer;
  try {
    bytes = readWhole(path);
  } catch {
    return undefined;
  }
  return sha256Hex(bytes) === sha256 ? bytes : undefined;
}

function readWhole(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.allocUnsafe(fstatSync(file).size);
    for (const piece of piecesOf(bytes))
      for (let at = 0, got = 1; at < piece.length; at += got) {
        got = readSync(file, piece, at, piece.length - at, null);
        if (got === 0) throw new Error('the file became shorter');
      }
    return bytes;
  } finally {
    closeSync(file);
  }
}
