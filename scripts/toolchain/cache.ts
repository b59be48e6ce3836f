import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/** Lower-case hex SHA-256 of `bytes`. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
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
  writeFileSync(draft, bytes);
  renameSync(draft, path);
}

/** The file's bytes if it is there and has that SHA-256; a file with another one is as good as none. */
export function readVerified(path: string, sha256: string): Buffer | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return undefined;
  }
  return sha256Hex(bytes) === sha256 ? bytes : undefined;
}
