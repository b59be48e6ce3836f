import type { Engine, OwnedObject } from '../engine/port.ts';
import { isOwnerAlive, LABEL, type Session } from './labels.ts';

const ORDER: readonly OwnedObject['kind'][] = ['container', 'volume', 'network', 'image'];

async function removeObject(engine: Engine, object: OwnedObject): Promise<void> {
  if (object.kind === 'container') await engine.remove(object.id);
  else if (object.kind === 'volume') await engine.removeVolume(object.id);
  else if (object.kind === 'network') await engine.removeNetwork(object.id);
  else await engine.removeImage(object.id);
}

async function removeAll(engine: Engine, objects: readonly OwnedObject[]): Promise<number> {
  for (const kind of ORDER) {
    for (const object of objects.filter((candidate) => candidate.kind === kind))
      await removeObject(engine, object);
  }
  return objects.length;
}

/**
 * Removes what dead sessions left: everything with our label, of another session, whose owner no longer
 * lives (spec/03, 10). Returns how many objects were removed.
 */
export async function sweepOrphans(engine: Engine, session: Session): Promise<number> {
  const isContainerRunning = async (id: string) => {
    try {
      return (await engine.inspect(id)).running;
    } catch {
      return false;
    }
  };
  const orphans: OwnedObject[] = [];
  for (const object of await engine.listOwned(LABEL.session)) {
    if (object.labels[LABEL.session] === session.id) continue;
    if (!(await isOwnerAlive(object.labels[LABEL.owner] ?? '', isContainerRunning))) orphans.push(object);
  }
  return removeAll(engine, orphans);
}

/** Removes what this session made and has not yet removed itself. */
export async function sweepSession(engine: Engine, session: Session): Promise<number> {
  const mine = (await engine.listOwned(LABEL.session)).filter(
    (object) => object.labels[LABEL.session] === session.id,
  );
  return removeAll(engine, mine);
}
