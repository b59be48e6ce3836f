import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { evaluator, ROOT } from './evaluator.ts';

/** Peak memory of the guest process while agents flood stdout for 20 s, as many reps at once as fit. */
const concurrency = String(availableParallelism());
const run = evaluator([
  'run',
  '--cache',
  join(ROOT, 'bench/tasks'),
  '--agent',
  join(ROOT, 'bench/agents/flood'),
  '--reps',
  concurrency,
  '--concurrency',
  concurrency,
]);
const peak = run.events.find((event) => event.event === 'ended')?.peak_rss_bytes;
console.log(
  `guest peak memory, ${concurrency} floods of 20 s at once (exit ${run.exitCode}): ${Math.round(Number(peak) / 1024 / 1024)} MiB`,
);
