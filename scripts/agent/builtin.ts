import { readFileSync } from 'node:fs';
import { parseAgentPackage } from '../../guest/agent/package.ts';
import type { AgentFile, AgentPackage } from '../../guest/agent/types.ts';
import { zipFiles } from './zip-files.ts';

export const BUILTIN_AGENTS = ['oracle', 'nop', 'auditor'] as const;
export type BuiltinAgent = (typeof BUILTIN_AGENTS)[number];

/** True for the names that `builtinAgent` knows. */
export function isBuiltinAgent(name: string): name is BuiltinAgent {
  return (BUILTIN_AGENTS as readonly string[]).includes(name);
}

/** Runs the task's own solution, which a local run uploads to /solution, with the shell it was written for. */
const ORACLE_SCRIPT = `#!/bin/sh
if [ ! -f /solution/solve.sh ]; then
  echo 'oracle: no /solution/solve.sh in this container' >&2
  exit 66
fi
if command -v bash >/dev/null 2>&1; then
  exec bash /solution/solve.sh
fi
if [ -x /bin/sh ]; then
  exec /bin/sh /solution/solve.sh
fi
exec /opt/evaluator/busybox sh /solution/solve.sh
`;

/** A plain heuristic: what the audit tracks are tried with. */
const AUDITOR = new URL('auditor.py', import.meta.url);

function manifest(command: readonly string[]): AgentFile {
  const text = `schema_version: 1\nkind: container\ncommand: ${JSON.stringify(command)}\nenv: []\n`;
  return { path: 'agent.yaml', bytes: Buffer.from(text), executable: false };
}

const FILES: Readonly<Record<BuiltinAgent, readonly AgentFile[]>> = {
  oracle: [
    manifest(['/opt/evaluator/busybox', 'sh', '/agent/run.sh']),
    { path: 'run.sh', bytes: Buffer.from(ORACLE_SCRIPT), executable: true },
  ],
  nop: [manifest(['/opt/evaluator/busybox', 'true'])],
  auditor: [
    manifest(['python3', '/agent/auditor.py']),
    { path: 'auditor.py', bytes: readFileSync(AUDITOR), executable: false },
  ],
};

/** The agents that check tasks: `oracle` should pass each, `nop` should fail each, `auditor` audits. Real packages, real hashes. */
export async function builtinAgent(name: BuiltinAgent): Promise<AgentPackage> {
  return parseAgentPackage(await zipFiles(FILES[name]));
}
