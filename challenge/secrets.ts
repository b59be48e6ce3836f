import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes a file that only its owner may read; a reader sees the old file or the new one, never half. */
export function writeSecret(path: string, data: string | Buffer): void {
  const unfinished = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(unfinished, data, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(unfinished, path);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** The secret kept at `path`, made and kept there the first time. */
export async function keptSecret(path: string, make: () => string | Promise<string>): Promise<string> {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!isMissing(error)) throw error;
    const made = await make();
    writeSecret(path, made);
    return made;
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
