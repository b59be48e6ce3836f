import type { Host } from './stages/config.ts';
import { emit } from './stages/emit.ts';
import { preflight } from './stages/preflight.ts';
import { reduce } from './stages/reduce.ts';
import { run } from './stages/run.ts';
import { inStage, main } from './stages/start.ts';
import { unlock } from './stages/unlock.ts';

/**
 * One evaluation: plan → preflight → unlock → run → reduce → emit. Every stage fails closed, with its name and a
 * code; whatever ends it, nothing of ours stays on the engine.
 */
export async function evaluate(host: Host): Promise<void> {
  const order = await inStage(host, 'preflight', () => preflight(host));
  const unlocked = await inStage(host, 'unlock', () => unlock(order, host));
  const outcome = await inStage(host, 'run', () => run(unlocked, host));
  const record = await inStage(host, 'reduce', async () => reduce(unlocked, outcome));
  await inStage(host, 'emit', () => emit(unlocked, outcome, record, host));
}

if (import.meta.main) await main(evaluate);
