import { z } from 'zod';
import { verifierModeSchema } from '../../guest/wire/plan.ts';

/** One published task, and how far it got here. Holds no byte of the task. */
const realTaskSchema = z.strictObject({
  task: z.string(),
  /** `checked`: oracle 1 and nop 0. `unchecked`: its image was made, and its check fails. `unbuilt`: no image. */
  state: z.enum(['checked', 'unchecked', 'unbuilt']),
  verifier: verifierModeSchema.nullable(),
  /** Tests that pass for the oracle; null where none is counted. */
  tests: z.int().positive().nullable(),
  /** Why it is not checked. */
  reason: z.string().nullable(),
});
export type RealTask = z.infer<typeof realTaskSchema>;

export const realTasksSchema = z.array(realTaskSchema);

const HEADINGS = {
  checked: 'Checked',
  unchecked: 'Baked, not checked',
  unbuilt: 'Not built',
} as const;

function table(state: RealTask['state'], tasks: readonly RealTask[]): string[] {
  const rows = tasks.map(({ task, verifier, tests, reason }) =>
    state === 'checked'
      ? `| ${task} | ${verifier} | ${tests ?? 'a reward file'} |`
      : `| ${task} | ${reason} |`,
  );
  const head =
    state === 'checked'
      ? ['| task | verifier | tests |', '| --- | --- | --- |']
      : ['| task | why |', '| --- | --- |'];
  return [`## ${HEADINGS[state]} (${tasks.length})`, '', ...head, ...rows, ''];
}

/** The tables of docs/real-tasks.md, one a state, each task in one of them. */
export function realTaskTables(tasks: readonly RealTask[]): string {
  const states = ['checked', 'unchecked', 'unbuilt'] as const;
  return states
    .flatMap((state) =>
      table(
        state,
        tasks.filter((one) => one.state === state),
      ),
    )
    .join('\n');
}
