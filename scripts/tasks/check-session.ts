import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { freeDiskBytes } from '../../guest/engine/disk.ts';
import { connectDocker } from '../../guest/engine/docker.ts';
import { verifyEngineFloor } from '../../guest/stages/engine-floor.ts';
import { openNetwork } from '../../guest/stages/prepare-engine.ts';
import { Capacity } from '../../guest/trial/capacity.ts';
import { systemClock } from '../../guest/trial/clock.ts';
import { newSession } from '../../guest/trial/labels.ts';
import type { TrialContext } from '../../guest/trial/session.ts';
import { endSession, sweepOrphans, sweepSession } from '../../guest/trial/sweep.ts';
import { createToolsVolume } from '../../guest/trial/tools-volume.ts';
import { type Mechanism, parseMechanism } from '../../guest/wire/mechanism.ts';
import { localMechanism } from '../run/local-mechanism.ts';
import { unlessAborted } from './unless-aborted.ts';

const MECHANISM = join(import.meta.dirname, '../../guest/mechanism.yaml');
const MIB = 1024 * 1024;
const UPLOADS_AT_ONCE = 4;
const SETTLE_MS = 5000;

/** What the checks of one bake share: the guest's own trial, without plan, challenge and attestation around it. */
export interface CheckSession {
  context: TrialContext;
  capacity: Capacity;
  mechanism: Mechanism;
}

export interface CheckPlace {
  engineSocket: string;
  toolchainTar: string;
  /** An image of the engine: a helper that fills the tools volume borrows it. */
  anyImage: string;
  /** Ends the session; what it made is removed before its reason is thrown. */
  signal: AbortSignal;
}

/**
 * Opens a session on the engine, with the tools that were baked, for the time of `body`; all that it made there
 * is removed again.
 * @throws engine_*; what `body` throws.
 */
export async function withCheckSession<T>(
  { engineSocket, toolchainTar, anyImage, signal }: CheckPlace,
  body: (session: CheckSession) => Promise<T>,
): Promise<T> {
  const engine = connectDocker(engineSocket);
  const session = newSession(null);
  const { mechanism } = parseMechanism(localMechanism(readFileSync(MECHANISM)));
  const info = await engine.info();
  verifyEngineFloor(info, mechanism.floors);
  await sweepOrphans(engine, session);
  try {
    const base = { engine, session, runId: 'bake-check' };
    const toolsVolume = await createToolsVolume(base, toolchainTar, anyImage, []);
    const diskPath = existsSync(info.dockerRootDir) ? info.dockerRootDir : '/';
    const { reserve } = mechanism;
    const context: TrialContext = {
      ...base,
      info,
      clock: systemClock,
      toolsVolume,
      cpuShares: reserve.trial_cpu_shares,
      maxStartRetries: mechanism.max_start_retries,
      diskPath,
      diskReserveBytes: reserve.disk_mb * MIB,
      uploads: pLimit(UPLOADS_AT_ONCE),
      counters: { faults: 0 },
      inference: null,
      signal,
    };
    await openNetwork(context);
    const capacity = new Capacity({
      cpus: info.cpus,
      memoryBytes: info.memoryBytes - reserve.memory_mb * MIB,
      diskBytes: (await freeDiskBytes(diskPath)) - reserve.disk_mb * MIB,
      slots: info.cpus,
    });
    signal.throwIfAborted();
    const checked = body({ context, capacity, mechanism });
    try {
      return await unlessAborted(signal, () => checked);
    } catch (error) {
      await endSession(engine, session).catch(() => 0);
      // What goes on is given a while to settle, so that nothing is made behind the last sweep.
      await Promise.race([checked.catch(() => undefined), systemClock.sleep(SETTLE_MS)]);
      throw error;
    }
  } finally {
    await sweepSession(engine, session, systemClock);
  }
}
