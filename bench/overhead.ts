import { join } from 'node:path';
import { evaluator, ROOT } from './evaluator.ts';
import { spread } from './statistics.ts';

/** Our own time per rep, by phase: a rep that does nothing, alone and two at a time, network none. */
const REPS = 40;

for (const concurrency of [1, 2]) {
  const run = evaluator([
    'run',
    '--cache',
    join(ROOT, 'bench/tasks'),
    '--agent',
    'nop',
    '--reps',
    String(REPS),
    '--concurrency',
    String(concurrency),
  ]);
  const reps = run.events.filter((event) => event.event === 'rep') as unknown as {
    overhead_ms: number;
    phases: Record<string, number>;
  }[];
  console.log(
    `\noverhead per rep, ${concurrency} at a time, ${reps.length} reps (exit ${run.exitCode}): p50 / p95 / max ms`,
  );
  const phases = [...new Set(reps.flatMap((rep) => Object.keys(rep.phases)))];
  for (const phase of phases)
    console.log(`  ${phase.padEnd(8)} ${spread(reps.map((rep) => rep.phases[phase] ?? 0))}`);
  console.log(`  overhead ${spread(reps.map((rep) => rep.overhead_ms))}`);
}
