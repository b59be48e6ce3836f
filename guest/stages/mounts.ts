import { locateCgroup } from '../engine/cgroup.ts';
import type { EngineInfo } from '../engine/port.ts';
import type { Host } from './config.ts';

/** Never a process: only the usual place counts, where the counters of trials are looked for too. */
const NO_PID = 0;

/**
 * What a compose mounts is there (spec/06): the engine and the guest agent by their sockets, the VM's cgroup tree by
 * this container's own counters. At a desk the guest is no container, and the tree is the machine's.
 * @returns what the engine says of itself.
 * @throws engine_unreachable, guest_agent_unreachable, cgroup_unreadable.
 */
export async function verifyMounts({
  engine,
  connectAgent,
  config,
}: Pick<Host, 'engine' | 'connectAgent' | 'config'>): Promise<EngineInfo> {
  const info = await engine.info();
  connectAgent();
  const { orchestratorContainer } = config;
  if (orchestratorContainer !== null) locateCgroup(info, orchestratorContainer, NO_PID).read();
  return info;
}
