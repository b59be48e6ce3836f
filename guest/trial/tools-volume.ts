import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Wheel } from '../agent/dependencies/wheel.ts';
import { labelsOf } from './labels.ts';
import { packagesTar } from './packages.ts';
import { TOOLS } from './sandbox.ts';
import type { TrialContext } from './session.ts';

/**
 * Fills a named volume with the toolchain and the agent's packages, once per session, through the archive API of a
 * helper that never runs. Trials mount it read-only: root in a container cannot change, delete or unmount it
 * (spec/03). Returns the volume's name. `imageId`: any image; the helper only lends its file system.
 */
export async function createToolsVolume(
  context: Pick<TrialContext, 'engine' | 'session' | 'runId'>,
  toolchainTar: string,
  imageId: string,
  wheels: readonly Wheel[],
): Promise<string> {
  const { engine, session } = context;
  const name = `cvm-eval-tools-${session.id}`;
  const labels = labelsOf(session, context.runId, 'tools', 'tools');
  await engine.createVolume(name, labels);
  const helper = await engine.create({
    name: `${name}-${randomBytes(6).toString('hex')}`,
    image: imageId,
    command: [`${TOOLS}/busybox`, 'true'],
    env: [],
    workingDir: '/',
    labels,
    capAdd: [],
    nanoCpus: 1e9,
    cpuShares: 1024,
    memoryBytes: 64 * 1024 * 1024,
    pids: 16,
    fileSizeBytes: 1024 * 1024 * 1024,
    network: 'none',
    dns: 'engine',
    toolsVolume: { name, target: TOOLS, access: 'rw' },
  });
  try {
    await engine.putArchive(helper, TOOLS, createReadStream(toolchainTar));
    for (const wheel of wheels) await engine.putArchive(helper, TOOLS, await packagesTar(wheel));
  } finally {
    await engine.remove(helper);
  }
  return name;
}
