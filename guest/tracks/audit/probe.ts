import { randomBytes } from 'node:crypto';
import { WORKSPACE } from './paths.ts';

/** Bytes that are read of what an agent left in a probe's place: one more than a true one has. */
export const MAX_PROBE_BYTES = 33;

/** What an agent must leave behind to show that it has run to its end (spec/02, Liveness probe). */
export interface Probe {
  /** `/task/workspace/.probe_` and 16 hex digits. */
  path: string;
  /** 32 hex digits. */
  content: string;
}

/** A probe that nobody can foresee; fresh for every rep. */
export function newProbe(): Probe {
  return {
    path: `${WORKSPACE}/.probe_${randomBytes(8).toString('hex')}`,
    content: randomBytes(16).toString('hex'),
  };
}

/** Byte for byte; null: nothing that could be read as a regular file of such a size. */
export function isAlive(probe: Probe, found: Buffer | null): boolean {
  return found?.equals(Buffer.from(probe.content, 'ascii')) ?? false;
}
