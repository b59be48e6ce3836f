import { parseAgentPackage } from '../../guest/agent/package.ts';
import type { AgentFile, AgentPackage } from '../../guest/agent/types.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { readSolution } from '../../guest/stages/solutions.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { builtinAgent } from './builtin.ts';
import { zipFiles } from './zip-files.ts';

/** Knows its task by the instruction, all that an agent is told, and lays the solution where the oracle looks. */
const FIND = `#!/bin/sh
known=/agent/solutions/$("$1" sha256sum "$TASK_INSTRUCTION_FILE" | "$1" cut -c1-64)
[ ! -d "$known" ] || "$1" cp -r "$known" /solution
exec "$1" sh /agent/run.sh
`;

const file = (path: string, text: string): AgentFile => ({
  path,
  bytes: Buffer.from(text),
  executable: true,
});

/**
 * The oracle with the solutions in its package: an image takes no folder of solutions.
 * @param solutions the folder of plain tasks.
 * @throws usage when two tasks have one instruction, and what a package may not be.
 */
export async function oraclePackage(
  solutions: string,
  tasks: readonly { taskId: string; instruction: Buffer }[],
): Promise<AgentPackage> {
  const oracle = await builtinAgent('oracle');
  const shell = oracle.manifest.command[0] ?? '';
  const command = JSON.stringify([shell, 'sh', '/agent/find.sh', shell]);
  const files = [
    file('agent.yaml', `schema_version: 1\nkind: container\ncommand: ${command}\nenv: []\n`),
    ...oracle.files.filter(({ path }) => path !== 'agent.yaml'),
    file('find.sh', FIND),
  ];
  const known = new Map<string, string>();
  for (const { taskId, instruction } of tasks) {
    const digest = sha256Hex(instruction);
    const same = known.get(digest);
    if (same !== undefined)
      throw new EvaluatorError(
        'usage',
        `--agent oracle: ${same} and ${taskId} have one instruction; choose with --tasks`,
      );
    known.set(digest, taskId);
    for (const { path, bytes, executable } of await readSolution(solutions, taskId))
      files.push({ path: path.replace(/^solution/, `solutions/${digest}`), bytes, executable });
  }
  return parseAgentPackage(await zipFiles(files));
}
