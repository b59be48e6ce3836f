import type { Host } from './stages/config.ts';
import { emit } from './stages/emit.ts';
import { preflight } from './stages/preflight.ts';
import { reduce } from './stages/reduce.ts';
import { run } from './stages/run.ts';
import { inStage, main } from './stages/start.ts';

/**
 * One evaluation: plan → preflight → run → reduce → emit. Every stage fails closed, with its name and a
 * code; whatever ends it, nothing of ours stays on the engine.
 */
export async function evaluate(host: Host): Promise<void> {
  const order = await inStage(host, 'preflight', () => preflight(host));
  const outcome = await inStage(host, 'run', () => run(order, host));
  const record = await inStage(host, 'reduce', async () => reduce(order, outcome));
  await inStage(host, 'emit', () => emit(order, outcome, record, host));
}

if (import.meta.main) await main(evaluate);
