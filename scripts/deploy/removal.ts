import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import type { Cloud } from './cloud.ts';
import type { Clock } from './order.ts';

const REMOVED_WITHIN_MS = 10 * 60_000;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 30_000;
/** A VM whose creation got no answer may be listed late. */
const LOOKS_AFTER_SILENCE = 4;

/** How the call that creates ended: only a refusal says that there is nothing. */
export type Creation = 'unasked' | 'refused' | 'silent' | 'created';

/** What may exist because of us. */
export interface Made {
  name: string;
  appId: string;
  creation: Creation;
  /** From the reply to its creation; null when there was none. */
  id: string | null;
}

/** Ids of VMs that are ours: `removed` are those whose deletion the cloud has taken. */
interface Ids {
  known: Set<string>;
  removed: Set<string>;
}

async function removeOne(id: string, cloud: Cloud, ids: Ids): Promise<void> {
  ids.known.add(id);
  await cloud.remove(id);
  ids.removed.add(id);
}

/** Deletes what carries the name that only this deployment has. @returns how many a whole list still showed. */
async function attempt(made: Made, cloud: Cloud, ids: Ids): Promise<number> {
  // First: a list that cannot be read must not keep a VM alive whose id is known.
  if (made.id !== null && !ids.removed.has(made.id)) await removeOne(made.id, cloud, ids);
  const listed = await cloud.list();
  const ours = listed.filter((vm) => vm.name === made.name && (vm.appId ?? made.appId) === made.appId);
  for (const { id } of ours) await removeOne(id, cloud, ids);
  return ours.length;
}

function isGone({ creation }: Made, emptyLooks: number, { removed }: Ids): boolean {
  if (removed.size > 0 || creation === 'refused') return emptyLooks > 0;
  // Created, and never listed: nothing shows that it is gone.
  return creation === 'silent' && emptyLooks >= LOOKS_AFTER_SILENCE;
}

/**
 * Deletes the VM of this deployment and looks whether it is gone. Whatever the cloud answers, it is tried
 * until `REMOVED_WITHIN_MS` have passed.
 * @throws deploy_not_deleted naming what is still paid for.
 */
export async function removeMade(made: Made, cloud: Cloud, clock: Clock, cost: string): Promise<void> {
  if (made.creation === 'unasked') return;
  const never = new AbortController().signal;
  const ids: Ids = { known: new Set(), removed: new Set() };
  const until = clock.nowMs() + REMOVED_WITHIN_MS;
  let emptyLooks = 0;
  let cause: unknown;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      emptyLooks = (await attempt(made, cloud, ids)) === 0 ? emptyLooks + 1 : 0;
      if (isGone(made, emptyLooks, ids)) return;
    } catch (error) {
      cause = error;
      if (isEvaluatorError(error, 'cloud_unauthorized')) break;
    }
    if (clock.nowMs() + pauseMs >= until) break;
    await clock.sleep(pauseMs, never);
  }
  const named = ids.known.size > 0 ? ` (${[...ids.known].join(', ')})` : '';
  const why = isEvaluatorError(cause) ? `: ${cause.message} [${cause.code}]` : '';
  throw new EvaluatorError(
    'deploy_not_deleted',
    `VM ${made.name}${named} MAY STILL RUN AND COST ${cost} PER HOUR${why}; delete it by hand at the cloud, now`,
    { cause },
  );
}
