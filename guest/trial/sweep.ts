import type { Engine, OwnedObject } from '../engine/port.ts';
import { isEvaluatorError } from '../errors.ts';
import type { Clock } from './clock.ts';
import { isOwnerAlive, LABEL, type Session } from './labels.ts';

const ORDER: readonly OwnedObject['kind'][] = ['container', 'volume', 'network', 'image'];

async function removeObject(engine: Engine, object: OwnedObject): Promise<void> {
  if (object.kind === 'container') await engine.remove(object.id);
  else if (object.kind === 'volume') await engine.removeVolume(object.id);
  else if (object.kind === 'network') await engine.removeNetwork(object.id);
  else await engine.removeImage(object.id);
}

/** Gone, or being removed by another sweep: both are fine. */
const isLeaving = (error: unknown) =>
  isEvaluatorError(error, 'engine_not_found') || isEvaluatorError(error, 'engine_conflict');

/**
 * Everything that can be removed is; the first container that cannot be is thrown at the end. A volume or
 * network whose last container is still leaving costs nothing and is left to the next sweep.
 */
async function removeAll(engine: Engine, objects: readonly OwnedObject[]): Promise<number> {
  const failures: unknown[] = [];
  for (const kind of ORDER) {
    for (const object of objects.filter((candidate) => candidate.kind === kind)) {
      await removeObject(engine, object).catch((error) => {
        if (object.kind === 'container' && !isLeaving(error)) failures.push(error);
      });
    }
  }
  if (failures.length > 0) throw failures[0];
  return objects.length;
}

/**
 * Removes what dead sessions left: everything with our label, of another session, whose owner no longer
 * lives (spec/03, 10). Returns how many objects there were.
 * @throws engine_*.
 */
export async function sweepOrphans(engine: Engine, session: Session): Promise<number> {
  const isContainerRunning = async (id: string) => {
    try {
      return (await engine.inspect(id)).running;
    } catch (error) {
      // An engine that gives no answer does not say that the owner is dead.
      if (isEvaluatorError(error, 'engine_not_found')) return false;
      throw error;
    }
  };
  const orphans: OwnedObject[] = [];
  for (const object of await engine.listOwned(LABEL.session)) {
    if (object.labels[LABEL.session] === session.id) continue;
    if (!(await isOwnerAlive(object.labels[LABEL.owner] ?? '', isContainerRunning))) orphans.push(object);
  }
  return removeAll(engine, orphans);
}

async function ofSession(engine: Engine, session: Session): Promise<OwnedObject[]> {
  const owned = await engine.listOwned(LABEL.session);
  return owned.filter((object) => object.labels[LABEL.session] === session.id);
}

const SWEEPS = 40;
const BETWEEN_SWEEPS_MS = 250;

/**
 * Removes what this session made and has not yet removed itself, again until nothing of it is left: a volume
 * or network is in use while its container is being removed.
 * @throws engine_*.
 */
export async function sweepSession(engine: Engine, session: Session, clock: Clock): Promise<void> {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    if (sweep > 0) await clock.sleep(BETWEEN_SWEEPS_MS);
    const mine = await ofSession(engine, session);
    if (mine.length === 0) return;
    await removeAll(engine, mine);
  }
}

/**
 * Ends everything of this session that runs. Volumes stay: a container created at the same moment would make
 * the engine create one of the same name, without our labels.
 * @throws engine_*.
 */
export async function endSession(engine: Engine, session: Session): Promise<number> {
  const mine = await ofSession(engine, session);
  return removeAll(
    engine,
    mine.filter((object) => object.kind === 'container'),
  );
}
