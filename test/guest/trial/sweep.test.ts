import { describe, expect, it } from 'vitest';
import type { Engine, OwnedObject } from '../../../guest/engine/port.ts';
import { type Code, EvaluatorError } from '../../../guest/errors.ts';
import { LABEL, labelsOf, newSession, type Session } from '../../../guest/trial/labels.ts';
import { endSession, sweepOrphans, sweepSession } from '../../../guest/trial/sweep.ts';
import { rejectionCode } from '../../support/throws.ts';

const clock = { monotonicMs: () => 0, sleep: async () => {} };
const mine = newSession(null);
const live = newSession(null);
const dead: Session = { id: 'dead', owner: 'process:another-boot:1:1' };
const KINDS = ['image', 'network', 'volume', 'container'] as const;

const objectsOf = (session: Session): OwnedObject[] =>
  KINDS.map((kind) => ({ kind, id: `${session.id}-${kind}`, labels: labelsOf(session, 'r', 'trial', 'x') }));

/** Objects and their removal alone; the real engine's part is tested on the real engine. */
function shelf(objects: readonly OwnedObject[], failing: Readonly<Record<string, Code[]>> = {}) {
  const left = new Map(objects.map((object) => [object.id, object]));
  const removed: string[] = [];
  const remove = async (id: string) => {
    const code = failing[id]?.shift();
    if (code) throw new EvaluatorError(code, id);
    left.delete(id);
    removed.push(id);
  };
  const engine = {
    listOwned: async () => [...left.values()],
    inspect: async (id: string) => {
      if (id === 'running') return { running: true };
      throw new EvaluatorError(id === 'unknown' ? 'engine_not_found' : 'engine_timeout', id);
    },
    remove,
    removeVolume: remove,
    removeNetwork: remove,
    removeImage: remove,
  } as unknown as Engine;
  return { engine, removed, left };
}

describe('sweepOrphans', () => {
  it('removes what a dead session left, containers first, and nothing of a live one', async () => {
    const { engine, removed } = shelf([...objectsOf(dead), ...objectsOf(live), ...objectsOf(mine)]);
    expect(await sweepOrphans(engine, mine)).toBe(4);
    expect(removed).toEqual(['dead-container', 'dead-volume', 'dead-network', 'dead-image']);
  });

  it('leaves its own session alone, whatever its owner is', async () => {
    const { engine, removed } = shelf(objectsOf(dead));
    await sweepOrphans(engine, dead);
    expect(removed).toEqual([]);
  });

  it('removes what names no owner', async () => {
    const { engine, removed } = shelf([{ kind: 'volume', id: 'v', labels: { [LABEL.session]: 'x' } }]);
    await sweepOrphans(engine, mine);
    expect(removed).toEqual(['v']);
  });

  it('asks the engine whether an owner container lives, and believes no silence', async () => {
    const owned = (id: string) => objectsOf({ id, owner: `container:${id}` });
    const { engine, removed } = shelf([...owned('running'), ...owned('unknown')]);
    await sweepOrphans(engine, mine);
    expect(removed.every((id) => id.startsWith('unknown'))).toBe(true);
    expect(removed).toHaveLength(4);
    const silent = shelf(owned('silent'));
    expect(await rejectionCode(sweepOrphans(silent.engine, mine))).toBe('engine_timeout');
    expect(silent.removed).toEqual([]);
  });

  it.each<Code>(['engine_not_found', 'engine_conflict'])(
    'takes %s for another sweep at work',
    async (code) => {
      const { engine, removed } = shelf(objectsOf(dead), { 'dead-container': [code] });
      await sweepOrphans(engine, mine);
      expect(removed).toEqual(['dead-volume', 'dead-network', 'dead-image']);
    },
  );

  it('removes the rest before it says that a container could not be removed', async () => {
    const { engine, removed } = shelf(objectsOf(dead), { 'dead-container': ['engine_error'] });
    expect(await rejectionCode(sweepOrphans(engine, mine))).toBe('engine_error');
    expect(removed).toEqual(['dead-volume', 'dead-network', 'dead-image']);
  });

  it('leaves a volume or network that is still in use to the next sweep', async () => {
    const { engine, removed } = shelf(objectsOf(dead), { 'dead-volume': ['engine_error'] });
    await sweepOrphans(engine, mine);
    expect(removed).toEqual(['dead-container', 'dead-network', 'dead-image']);
  });
});

describe('the end of a session', () => {
  it('sweepSession tries again until nothing of it is left', async () => {
    const failing: Record<string, Code[]> = {
      [`${mine.id}-volume`]: ['engine_conflict', 'engine_conflict'],
      [`${mine.id}-network`]: ['engine_conflict'],
    };
    const { engine, left } = shelf([...objectsOf(mine), ...objectsOf(live)], failing);
    await sweepSession(engine, mine, clock);
    expect([...left.values()].map(({ labels }) => labels[LABEL.session])).toEqual(Array(4).fill(live.id));
  });

  it('sweepSession does not try for ever', async () => {
    const forever = { [`${mine.id}-volume`]: Array<Code>(1000).fill('engine_conflict') };
    const { engine, left } = shelf(objectsOf(mine), forever);
    await sweepSession(engine, mine, clock);
    expect([...left.keys()]).toEqual([`${mine.id}-volume`]);
  });

  it('endSession removes containers alone', async () => {
    const { engine, removed } = shelf([...objectsOf(mine), ...objectsOf(live)]);
    expect(await endSession(engine, mine)).toBe(1);
    expect(removed).toEqual([`${mine.id}-container`]);
  });
});
