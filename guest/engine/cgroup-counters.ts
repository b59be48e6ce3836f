import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../errors.ts';
import type { CgroupReader } from './cgroup.ts';

/** The counters' files, by cgroup version; `directory` gives a controller's directory. */
export function cgroupCounters(version: 1 | 2, directory: (controller: string) => string): CgroupReader {
  return version === 1
    ? version1(directory('cpuacct'), directory('cpu'), directory('memory'))
    : version2(directory('unified'));
}

function version1(cpuacct: string, cpu: string, memory: string): CgroupReader {
  return {
    read: () => ({
      cpuUsec: Math.floor(wholeFile(join(cpuacct, 'cpuacct.usage')) / 1e3),
      memoryPeakBytes: wholeFile(join(memory, 'memory.max_usage_in_bytes')),
      oomKills: keyed(join(memory, 'memory.oom_control'), 'oom_kill'),
      throttledMs: keyed(join(cpu, 'cpu.stat'), 'throttled_time') / 1e6,
    }),
  };
}

function version2(directory: string): CgroupReader {
  const cpuStat = join(directory, 'cpu.stat');
  return {
    read: () => ({
      cpuUsec: keyed(cpuStat, 'usage_usec'),
      memoryPeakBytes: wholeFile(join(directory, 'memory.peak')),
      oomKills: keyed(join(directory, 'memory.events'), 'oom_kill'),
      throttledMs: keyed(cpuStat, 'throttled_usec') / 1e3,
    }),
  };
}

/** A file that is one number. */
function wholeFile(path: string): number {
  return counter(path, readText(path).trim());
}

/** The number after `key` in a file of `key value` lines. */
function keyed(path: string, key: string): number {
  const line = readText(path)
    .split('\n')
    .find((candidate) => candidate.startsWith(`${key} `));
  return counter(path, line?.slice(key.length + 1) ?? '');
}

function counter(path: string, text: string): number {
  if (!/^\d{1,20}$/.test(text)) {
    throw new EvaluatorError('cgroup_unreadable', `${path}: holds no counter where one is expected`);
  }
  return Number(text);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (cause) {
    throw new EvaluatorError('cgroup_unreadable', `${path}: cannot be read`, { cause });
  }
}
