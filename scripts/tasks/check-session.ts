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
import { sweepOrphans, sweepSession } from '../../guest/trial/sweep.ts';
import { createToolsVolume } from '../../guest/trial/tools-volume.ts';
import { type Mechanism, parseMechanism } from '../../guest/wire/mechanism.ts';
import { localMechanism } from '../run/local-mechanism.ts';

const MECHANISM = join(import.meta.dirname, '../../guest/mechanism.yaml');
const MIB = 1024 * 1024;
const UPLOADS_AT_ONCE = 4;

/** What the checks of one bake share: the guest's own trial, without plan, challenge and attestation around it. */
export interface CheckSession {
  context: TrialContext;
  capacity: Capacity;
  mechanism: Mechanism;
}

/**
 * Opens a session on the engine, with the tools that were baked, for the time of `body`; all that it made there
 * is removed again.
 * @param anyImage an image of the engine: a helper that fills the tools volume borrows it.
 * @throws engine_*; what `body` throws.
 */
export async function withCheckSession<T>(
  { engineSocket, toolchainTar, anyImage }: { engineSocket: string; toolchainTar: string; anyImage: string },
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
      signal: new AbortController().signal,
    };
    await openNetwork(context);
    const capacity = new Capacity({
      cpus: info.cpus,
      memoryBytes: info.memoryBytes - reserve.memory_mb * MIB,
      diskBytes: (await freeDiskBytes(diskPath)) - reserve.disk_mb * MIB,
      slots: info.cpus,
    });
    return await body({ context, capacity, mechanism });
  } finally {
    await sweepSession(engine, session, systemClock);
  }
}
