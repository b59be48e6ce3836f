import { parseArgs } from 'node:util';
import { connectDeskEngine, DESK_LABEL, type DeskEngine, deskImage } from './desk-engine.ts';
import { stopContainer, sweepGuest } from './guest-container.ts';

/** Ends a desk's guest, removes what that left, then the desk's own: container, bridge, image. */
async function reap(engine: DeskEngine, deskId: string): Promise<void> {
  const mine = (await engine.listOwned(DESK_LABEL)).filter(({ labels }) => labels[DESK_LABEL] === deskId);
  for (const { kind, id } of mine) {
    if (kind !== 'container') continue;
    await stopContainer(engine, id);
    await sweepGuest(engine, id);
    await engine.remove(id);
  }
  for (const { kind, id } of mine) if (kind === 'network') await engine.removeNetwork(id);
  const image = await engine.image(deskImage(deskId));
  if (image !== null) await engine.removeImage(image.id);
}

/**
 * A process that outlives whoever works at a desk, and cleans up when they are done or gone: its parent asks it
 * with SIGTERM, or is killed and so closes the lifeline.
 */
const { values } = parseArgs({ options: { engine: { type: 'string' }, desk: { type: 'string' } } });
const { engine = '', desk = '' } = values;
const asked = new Promise<void>((resolve) => process.once('SIGTERM', resolve));
// Of a terminal's: the parent gets it too, and asks.
process.on('SIGINT', () => undefined);
const alive = setInterval(() => undefined, 2 ** 30);
process.stdout.write(`${JSON.stringify({ event: 'ready' })}\n`);
await asked;
clearInterval(alive);
await reap(connectDeskEngine(engine), desk);
