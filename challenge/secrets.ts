import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file beside `path` that only its owner may read, whole on the disk before it is given its name. */
function writeUnnamed(path: string, data: string | Buffer): string {
  const unnamed = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(unnamed, data, { mode: 0o600, flag: 'wx', flush: true });
  return unnamed;
}

/** Writes a file that only its owner may read; a reader sees the old file or the new one, never half. */
export function writeSecret(path: string, data: string | Buffer): void {
  renameSync(writeUnnamed(path, data), path);
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

/** Gives a new secret its name, unless another process was faster: then that one's is the secret. */
function nameFirst(unnamed: string, path: string): void {
  try {
    linkSync(unnamed, path);
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  } finally {
    unlinkSync(unnamed);
  }
}

/** The secret kept at `path`, made and kept there the first time, by whichever process comes first. */
export async function keptSecret(path: string, make: () => string | Promise<string>): Promise<string> {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    nameFirst(writeUnnamed(path, await make()), path);
    return readFileSync(path, 'utf8');
  }
}

async function keptEd25519(path: string): Promise<KeyObject> {
  const pem = await keptSecret(path, () =>
    generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  );
  return createPrivateKey(pem);
}

export interface ChallengeKeys {
  rootKey: KeyObject;
  signerKey: KeyObject;
  epochSecret: Buffer;
  /** Session tokens of reviews are made from it. */
  tokenSecret: Buffer;
}

/** The challenge's own keys below `stateDir` (0700), each file 0600; made on first use. */
export async function loadKeys(stateDir: string): Promise<ChallengeKeys> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const kept32 = async (name: string) =>
    Buffer.from(await keptSecret(join(stateDir, name), () => randomBytes(32).toString('hex')), 'hex');
  return {
    rootKey: await keptEd25519(join(stateDir, 'plan-root.pem')),
    signerKey: await keptEd25519(join(stateDir, 'plan-signer.pem')),
    epochSecret: await kept32('epoch-secret'),
    tokenSecret: await kept32('review-token-secret'),
  };
}
