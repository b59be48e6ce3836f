import { createReadStream } from 'node:fs';
import type { Engine } from '../engine/port.ts';
import { labelsOf, type Session } from './labels.ts';
import { TOOLS } from './sandbox.ts';

/**
 * Fills a named volume with the toolchain, once per session, through the archive API of a helper that never
 * runs. Trials mount it read-only: root in a container cannot change, delete or unmount it (spec/03).
 * Returns the volume's name. `imageId`: any image; the helper only lends its file system.
 */
export async function createToolsVolume(
  engine: Engine,
  session: Session,
  toolchainTar: string,
  imageId: string,
): Promise<string> {
  const name = `cvm-eval-tools-${session.id}`;
  const labels = labelsOf(session, 'tools', 'tools');
  await engine.createVolume(name, labels);
  const helper = await engine.create({
    name: `cvm-eval-tools-${session.id}`,
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
    toolsVolume: { name, target: TOOLS, access: 'rw' },
  });
  try {
    await engine.putArchive(helper, TOOLS, createReadStream(toolchainTar));
  } finally {
    await engine.remove(helper);
  }
  return name;
}
