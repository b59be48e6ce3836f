import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../errors.ts';
import { cgroupCounters } from './cgroup-counters.ts';
import type { EngineInfo } from './port.ts';

/** What the kernel has counted for a container so far, processes that ended included. */
export interface CgroupReading {
  /** User and system time, microseconds. */
  cpuUsec: number;
  memoryPeakBytes: number;
  /** Processes killed because the memory limit was reached. */
  oomKills: number;
  /** Time in which a process wanted to run but the CPU limit was used up, milliseconds. */
  throttledMs: number;
}

export interface CgroupReader {
  /** Reads the counters now. Throws `cgroup_unreadable`, never a zero in place of a counter. */
  read(): CgroupReading;
}

/** Where the kernel's views are mounted. */
export interface KernelRoots {
  cgroup: string;
  proc: string;
}

const KERNEL: KernelRoots = { cgroup: '/sys/fs/cgroup', proc: '/proc' };

/**
 * Finds a running container's cgroup. The engine's word decides the version, since a hybrid kernel mounts
 * both. `pid` is the main process as the engine knows it: where the usual place is empty (a nested engine, a
 * cgroup parent), /proc/<pid>/cgroup is asked. Throws `cgroup_unreadable`.
 */
export function locateCgroup(
  info: Pick<EngineInfo, 'cgroupVersion' | 'cgroupDriver'>,
  containerId: string,
  pid: number,
  roots: KernelRoots = KERNEL,
): CgroupReader {
  const usual =
    info.cgroupDriver === 'systemd' ? `system.slice/docker-${containerId}.scope` : `docker/${containerId}`;
  const directory = (controller: string): string => {
    const base = info.cgroupVersion === 2 ? roots.cgroup : join(roots.cgroup, controller);
    if (existsSync(join(base, usual))) return join(base, usual);
    const listed = fromProc(roots, pid, info.cgroupVersion === 2 ? '' : controller);
    // A pid of another namespace could name a stranger's cgroup.
    if (listed?.includes(containerId) && existsSync(join(base, listed))) return join(base, listed);
    throw new EvaluatorError(
      'cgroup_unreadable',
      `container ${containerId}: no ${controller} cgroup under ${base}; is the VM's cgroup tree mounted?`,
    );
  };
  return cgroupCounters(info.cgroupVersion, directory);
}

/** The cgroup of `pid` for one controller ('' on version 2), or undefined. */
function fromProc(roots: KernelRoots, pid: number, controller: string): string | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(roots.proc, String(pid), 'cgroup'), 'utf8').split('\n');
  } catch {
    return undefined;
  }
  for (const line of lines) {
    const [, controllers = '', ...path] = line.split(':');
    if (controllers.split(',').includes(controller)) return path.join(':');
  }
  return undefined;
}
