import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';

/** Every object this project makes on an engine carries these (spec/03). */
export const LABEL = {
  session: 'io.cvm-evaluator.session',
  owner: 'io.cvm-evaluator.owner',
  run: 'io.cvm-evaluator.run',
  role: 'io.cvm-evaluator.role',
  rep: 'io.cvm-evaluator.rep',
} as const;

export type Role = 'proxy' | 'trial' | 'sandbox' | 'verifier' | 'control' | 'tools';

/** Who owns what a session made: the process that can still clean it up. */
export interface Session {
  id: string;
  owner: string;
}

/** Start time of a process in clock ticks since boot (proc(5), field 22); null when it is gone or has ended. */
function processStartTime(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name may hold spaces and parentheses: fields are counted after the last one.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // One that nobody has waited for keeps its entry, and will never clean up.
    return 'ZX'.includes(state) ? null : (fields[18] ?? null);
  } catch {
    return null;
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Which process ids this process sees, as `pid_namespaces(7)` names it: digits. */
function pidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
}

/** `orchestratorContainer` is this process's own container id, or null at a desk. */
export function newSession(orchestratorContainer: string | null): Session {
  const owner = orchestratorContainer
    ? `container:${orchestratorContainer}`
    : `process:${bootId()}:${process.pid}:${processStartTime(process.pid)}:${pidNamespace()}`;
  return { id: randomBytes(8).toString('hex'), owner };
}

export function labelsOf(session: Session, runId: string, role: Role, rep: string): Record<string, string> {
  return {
    [LABEL.session]: session.id,
    [LABEL.owner]: session.owner,
    [LABEL.run]: runId,
    [LABEL.role]: role,
    [LABEL.rep]: rep,
  };
}

/**
 * Whether the owner named by a label still lives. `isContainerRunning` asks the engine.
 * An owner that cannot be read is dead: nobody will ever clean up after it.
 */
export async function isOwnerAlive(
  owner: string,
  isContainerRunning: (id: string) => Promise<boolean>,
): Promise<boolean> {
  const [kind, first, pid, startTime, namespace] = owner.split(':');
  if (kind === 'container' && first) return isContainerRunning(first);
  if (kind !== 'process' || !pid || !namespace || first !== bootId()) return false;
  // From inside a container a process of the machine cannot be seen, whether it lives or not.
  if (namespace !== pidNamespace()) return true;
  return processStartTime(Number(pid)) === startTime;
}
