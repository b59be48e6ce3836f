import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestPlace } from './guest-place.ts';
import { guestSourceDigest } from './guest-source.ts';
import type { LoadedCache } from './inputs.ts';
import { localMechanism, withOffers } from './local-mechanism.ts';
import type { RunOptions } from './options.ts';
import { startProcess } from './process.ts';
import { ROOT } from './simulator.ts';

export const SHIPPED_MECHANISM = join(ROOT, 'guest/mechanism.yaml');

/**
 * Writes a desk's mechanism into the scratch folder.
 * @param offers the file with what it offers to agents; null: neither models nor packages.
 * @throws mechanism_invalid, schema_invalid.
 */
export function writeMechanism(work: string, offers: string | null): string {
  const path = join(work, 'mechanism.yaml');
  const mechanism = localMechanism(readFileSync(SHIPPED_MECHANISM));
  writeFileSync(path, offers === null ? mechanism : withOffers(mechanism, readFileSync(offers)));
  return path;
}

/** The guest as a process of this machine, straight from the source that lies here. */
export function processPlace(options: RunOptions, loaded: LoadedCache, mechanism: string): GuestPlace {
  return {
    imageRef: `localhost/cvm-evaluator-guest-source@sha256:${guestSourceDigest(ROOT)}`,
    gitRevision: 'local',
    mechanism,
    challengeHost: '127.0.0.1',
    start: async ({ planRoot, guestAgentSocket, env, onStdout, onStderr }) =>
      startProcess({
        name: 'guest',
        script: join(ROOT, 'guest/eval.ts'),
        args: [
          '--plan-root',
          planRoot.publicKey,
          '--challenge-id',
          planRoot.challengeId,
          '--cache',
          loaded.cache.directory,
          '--mechanism',
          mechanism,
          '--engine-socket',
          options.engineSocket,
          '--guest-agent-socket',
          guestAgentSocket,
          ...(options.agent === 'oracle' && loaded.solutions ? ['--solutions', loaded.solutions] : []),
          ...(options.weight === 'calibration' ? ['--logs', join(options.out, 'reps')] : []),
        ],
        env,
        input: '',
        onStdout,
        onStderr,
      }),
  };
}
