import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type KernelRoots, locateCgroup } from '../../../guest/engine/cgroup.ts';
import { scratchFolder } from '../../support/scratch.ts';

const ID = 'c0ffee'.padEnd(64, '0');
const V1 = { cgroupVersion: 1, cgroupDriver: 'cgroupfs' } as const;
const V2 = { cgroupVersion: 2, cgroupDriver: 'cgroupfs' } as const;
const V2_SYSTEMD = { cgroupVersion: 2, cgroupDriver: 'systemd' } as const;

let root: string;
let roots: KernelRoots;

beforeEach(() => {
  root = scratchFolder();
  roots = { cgroup: join(root, 'cgroup'), proc: join(root, 'proc') };
});

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function putV1(place: string): void {
  put(`cgroup/cpuacct/${place}/cpuacct.usage`, '1234567890\n');
  put(`cgroup/cpu/${place}/cpu.stat`, 'nr_periods 9\nnr_throttled 3\nthrottled_time 250000000\n');
  put(`cgroup/memory/${place}/memory.max_usage_in_bytes`, '8192\n');
  put(`cgroup/memory/${place}/memory.oom_control`, 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n');
}

function putV2(place: string): void {
  put(`cgroup/${place}/cpu.stat`, 'usage_usec 1234567\nuser_usec 1\nsystem_usec 1\nthrottled_usec 250000\n');
  put(`cgroup/${place}/memory.peak`, '8192\n');
  put(`cgroup/${place}/memory.events`, 'low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n');
}

const READING = { cpuUsec: 1234567, memoryPeakBytes: 8192, oomKills: 2, throttledMs: 250 };

describe('locateCgroup', () => {
  it('reads version 1, with the cgroupfs driver and with systemd', () => {
    putV1(`docker/${ID}`);
    expect(locateCgroup(V1, ID, 1, roots).read()).toEqual(READING);
    const other = 'beef'.padEnd(64, '0');
    putV1(`system.slice/docker-${other}.scope`);
    expect(locateCgroup({ ...V1, cgroupDriver: 'systemd' }, other, 1, roots).read()).toEqual(READING);
  });

  it('reads version 2, with the cgroupfs driver and with systemd', () => {
    putV2(`docker/${ID}`);
    expect(locateCgroup(V2, ID, 1, roots).read()).toEqual(READING);
    const other = 'beef'.padEnd(64, '0');
    putV2(`system.slice/docker-${other}.scope`);
    expect(locateCgroup(V2_SYSTEMD, other, 1, roots).read()).toEqual(READING);
  });

  it('believes the engine about the version when a hybrid kernel shows both', () => {
    putV1(`docker/${ID}`);
    putV2(`docker/${ID}`);
    put(`cgroup/docker/${ID}/cpu.stat`, 'usage_usec 1\nthrottled_usec 0\n');
    expect(locateCgroup(V1, ID, 1, roots).read().cpuUsec).toBe(READING.cpuUsec);
    expect(locateCgroup(V2, ID, 1, roots).read().cpuUsec).toBe(1);
  });

  it('asks /proc where the usual place is empty', () => {
    putV2(`nested/docker/${ID}`);
    put('proc/77/cgroup', `0::/nested/docker/${ID}\n`);
    expect(locateCgroup(V2, ID, 77, roots).read()).toEqual(READING);
  });

  it('asks /proc for each controller of version 1', () => {
    putV1(`nested/docker/${ID}`);
    const path = `/nested/docker/${ID}`;
    put('proc/77/cgroup', `5:memory:${path}\n3:cpu,cpuacct:${path}\n0::/\n`);
    expect(locateCgroup(V1, ID, 77, roots).read()).toEqual(READING);
  });

  it('does not take the cgroup of a stranger with the same pid', () => {
    putV2('user.slice');
    put('proc/77/cgroup', '0::/user.slice\n');
    expect(() => locateCgroup(V2, ID, 77, roots)).toThrow(
      expect.objectContaining({ code: 'cgroup_unreadable', fault: 'infra' }),
    );
  });

  it.each([
    ['gone', 'memory.peak', null],
    ['empty', 'memory.peak', ''],
    ['unlimited', 'memory.peak', 'max\n'],
    ['negative', 'memory.peak', '-1\n'],
    ['without its key', 'memory.events', 'oom 1\n'],
    ['with a key that only begins alike', 'cpu.stat', 'usage_usec_total 5\nthrottled_usec 0\n'],
  ])('throws for a counter that is %s: never zero', (_, file, text) => {
    putV2(`docker/${ID}`);
    const reader = locateCgroup(V2, ID, 1, roots);
    if (text === null) rmSync(join(roots.cgroup, 'docker', ID, file));
    else put(`cgroup/docker/${ID}/${file}`, text);
    expect(() => reader.read()).toThrow(expect.objectContaining({ code: 'cgroup_unreadable' }));
  });
});
