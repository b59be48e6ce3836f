import { isEvaluatorError } from '../../guest/errors.ts';
import { isOwnerAlive } from '../../guest/trial/labels.ts';
import { DESK_LABEL, DESK_OWNER_LABEL, type DeskEngine, deskImage } from './desk-engine.ts';
import { stopContainer, sweepGuest } from './guest-container.ts';

/** Ends a desk's guest, removes what that left, then the desk's own: container, bridge, image. @throws engine_*. */
export async function reap(engine: DeskEngine, deskId: string): Promise<void> {
  const mine = (await engine.listOwned(DESK_LABEL)).filter(({ labels }) => labels[DESK_LABEL] === deskId);
  for (const { kind, id } of mine) {
    if (kind !== 'container') continue;
    await stopContainer(engine, id, 'SIGTERM');
    await sweepGuest(engine, id);
    await engine.remove(id);
  }
  for (const { kind, id } of mine) if (kind === 'network') await engine.removeNetwork(id);
  const image = await engine.image(deskImage(deskId));
  if (image !== null) await engine.removeImage(image.id);
}

const never = async () => false;

/** Reaps the desks whose reaper was killed. @throws engine_*. */
export async function reapDead(engine: DeskEngine): Promise<void> {
  const dead = new Set<string>();
  for (const { labels } of await engine.listOwned(DESK_LABEL))
    if (!(await isOwnerAlive(labels[DESK_OWNER_LABEL] ?? '', never))) dead.add(labels[DESK_LABEL] ?? '');
  for (const deskId of dead)
    await reap(engine, deskId).catch((error) => {
      // Another desk is at it.
      if (!isEvaluatorError(error, 'engine_not_found') && !isEvaluatorError(error, 'engine_conflict'))
        throw error;
    });
}
