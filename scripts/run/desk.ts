import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { connectDeskEngine, DESK_LABEL, DESK_OWNER_LABEL } from './desk-engine.ts';
import type { Desk } from './guest-container.ts';
import { type Running, startServer } from './process.ts';
import { reapDead } from './reap.ts';

/** A desk with the address at which its guest reaches this machine. */
export interface OpenDesk extends Desk {
  gateway: string;
}

/**
 * Makes a bridge for a guest's container; first of all a reaper, which takes down guest, bridge and what they
 * leave, whatever ends this process. What desks with a dead reaper have left goes too.
 * @param onReaper is handed the reaper before anything is there to reap.
 * @throws engine_*, process_failed.
 */
export async function openDesk(
  engineSocket: string,
  onReaper: (running: Running) => void,
  onLog: (line: string) => void,
): Promise<OpenDesk> {
  const engine = connectDeskEngine(engineSocket);
  const id = randomBytes(8).toString('hex');
  const { running, ready } = await startServer<{ owner: string }>({
    name: 'reaper',
    script: join(import.meta.dirname, 'reaper.ts'),
    args: ['--engine', engineSocket, '--desk', id],
    env: {},
    input: '',
    onStderr: onLog,
  });
  // A terminal's SIGINT reaches it too, before its parent asks: that signal it does not heed.
  onReaper({ ...running, stop: () => running.stop('SIGTERM') });
  await reapDead(engine);
  const labels = { [DESK_LABEL]: id, [DESK_OWNER_LABEL]: ready.owner };
  const network = `cvm-evaluator-desk-${id}`;
  const { gateway } = await engine.openBridge(network, labels);
  return { engine, engineSocket, id, labels, network, gateway };
}
