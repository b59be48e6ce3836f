import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../guest/errors.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import { ed25519PublicHex } from '../guest/wire/plan-signature.ts';
import type { Issuer } from './issue-plan.ts';
import type { ReviewIssuer } from './review/issue-assignment.ts';
import { keptSecret, loadKeys, writeSecret } from './secrets.ts';
import { issueServerIdentity, type ServerIdentity } from './tls.ts';

/** What a local challenge keeps in its `state_dir`, and reads of its configuration's files. */

/** @throws usage naming the field. */
export function readInput(path: string, field: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new EvaluatorError('usage', `config: ${field}: cannot read ${path}`, { cause });
  }
}

/** The signing keys of a local challenge, made at the first call and kept in `stateDir`. */
export async function loadIssuer(stateDir: string): Promise<Issuer & ReviewIssuer> {
  const keys = await loadKeys(stateDir);
  return { ...keys, challengeId: `local-${ed25519PublicHex(keys.rootKey).slice(0, 16)}` };
}

/**
 * The server's certificate for its host, made at the first call and kept while it lasts until `untilMs`: a guest
 * must reach this server, under the CA that its plan names, as long as the plan lives.
 */
export async function loadIdentity(
  config: { state_dir: string; host: string },
  nowMs: number,
  untilMs: number,
): Promise<ServerIdentity> {
  const path = join(config.state_dir, `tls-${sha256Hex(config.host).slice(0, 16)}.json`);
  const make = async () => JSON.stringify(await issueServerIdentity(config.host, nowMs));
  const kept = JSON.parse(await keptSecret(path, make)) as ServerIdentity;
  if (new X509Certificate(kept.certificatePem).validToDate.getTime() > untilMs) return kept;
  const renewed = await make();
  writeSecret(path, renewed);
  return JSON.parse(renewed) as ServerIdentity;
}
