import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE_CAPABILITIES } from '../../../guest/trial/capabilities.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';
import { answerOf, PLACES } from './places.ts';

let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** Tries each way out and prints, as JSON, the errno that stopped it; null: it was not stopped. */
const ATTEMPTS = `
import ctypes, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *args):
    ctypes.set_errno(0)
    return None if libc.syscall(NUMBER[name], *args) >= 0 else os.strerror(ctypes.get_errno())
def mount(source, target, kind, flags):
    ctypes.set_errno(0)
    done = libc.mount(source, target, kind, flags, None)
    return None if done == 0 else os.strerror(ctypes.get_errno())
def attempt(action):
    try: action()
    except OSError as error: return os.strerror(error.errno)
def shield():
    with open('/proc/self/oom_score_adj', 'w') as f: f.write('-1000')
NUMBER = {'unshare': 272, 'setns': 308, 'keyctl': 250, 'add_key': 248, 'bpf': 321, 'mknod': 133, 'pivot_root': 155,
  'umount': 166, 'init_module': 175, 'kexec_load': 246, 'perf_event_open': 298, 'reboot': 169, 'sethostname': 170,
  'settimeofday': 164, 'iopl': 172, 'open_by_handle_at': 304, 'userfaultfd': 323, 'swapon': 167, 'acct': 163}
buffer = ctypes.create_string_buffer(256)
b = ctypes.addressof(buffer)
print(json.dumps({
  'mount tmpfs': mount(b'x', b'/mnt', b'tmpfs', 0),
  'mount bind': mount(b'/app', b'/mnt', None, 4096),
  'mount proc': mount(b'proc', b'/mnt', b'proc', 0),
  'remount tools': mount(None, b'/opt/evaluator', None, 32 | 4096),
  'unmount tools': call('umount', b'/opt/evaluator', 2),
  'unshare user': call('unshare', 0x10000000),
  'unshare mount': call('unshare', 0x20000),
  'unshare network': call('unshare', 0x40000000),
  'enter a namespace': call('setns', os.open('/proc/1/ns/net', 0), 0),
  'keyctl': call('keyctl', 0, -3, 1),
  'add_key': call('add_key', b'user', b'x', b, 1, -3),
  'bpf': call('bpf', 0, b, 72),
  'make a device': call('mknod', b'/app/disk', 0o060600, 0xfe00),
  'pivot_root': call('pivot_root', b'/app', b'/app'),
  'load a module': call('init_module', b, 1, b),
  'kexec': call('kexec_load', 0, 0, 0, 0),
  'perf': call('perf_event_open', b, -1, 0, -1, 0),
  'reboot': call('reboot', 0xfee1dead, 672274793, 0x01234567, 0),
  'rename the host': call('sethostname', b'x', 1),
  'set the clock': call('settimeofday', b, 0),
  'iopl': call('iopl', 3),
  'open by handle': call('open_by_handle_at', -100, b, 0),
  'swap': call('swapon', b'/app/.keep', 0),
  'acct': call('acct', b'/app/.keep'),
  'write a tool': attempt(lambda: open('/opt/evaluator/busybox', 'wb')),
  'add a tool': attempt(lambda: open('/opt/evaluator/front/bash', 'wb')),
  'delete a tool': attempt(lambda: os.unlink('/opt/evaluator/entry.sh')),
  'move the tools': attempt(lambda: os.rename('/opt/evaluator', '/opt/other')),
  'write sysrq': attempt(lambda: open('/proc/sysrq-trigger', 'w')),
  'write a sysctl': attempt(lambda: open('/proc/sys/kernel/core_pattern', 'w')),
  'write sysfs': attempt(lambda: open('/sys/kernel/mm/ksm/run', 'w')),
  'write a cgroup': attempt(lambda: open('/sys/fs/cgroup/memory/memory.limit_in_bytes', 'w')),
  'lower its own oom score': attempt(shield),
  'raw socket': attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
  'packet socket': attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)),
}))
`;

const SEEN = `
import json, os
status = dict(line.rstrip('\\n').split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)
import resource
limits = {name: resource.getrlimit(getattr(resource, name)) for name in ('RLIMIT_NOFILE', 'RLIMIT_CORE', 'RLIMIT_FSIZE')}
sockets = {os.path.realpath(os.path.join(folder, name)) for top in ('/var/run', '/run', '/tmp', '/var/lib', '/opt') for folder, _, names in os.walk(top)
  for name in names if name.endswith('.sock')}
mounts = [line.split()[1:4] for line in open('/proc/mounts')]
print(json.dumps({'caps': {name: status[name] for name in ('CapPrm', 'CapEff', 'CapBnd', 'CapInh', 'CapAmb')},
  'nnp': status['NoNewPrivs'], 'seccomp': status['Seccomp'], 'limits': limits, 'sockets': sorted(sockets),
  'tools': [mount for mount in mounts if mount[0] == '/opt/evaluator'],
  'binds': [mount[0] for mount in mounts if mount[1] in ('ext4', 'xfs', 'btrfs')],
  'processes': sorted(int(name) for name in os.listdir('/proc') if name.isdigit())[:1],
  'devices': sorted(os.listdir('/dev')), 'net': os.listdir('/sys/class/net'), 'root': os.listdir('/')}))
`;

/** The bits of the capabilities of spec/03, by their numbers in capability.h. */
const NUMBERS = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  NET_BIND_SERVICE: 10,
  SYS_CHROOT: 18,
};

describe.concurrent.each(PLACES)('%s: an agent', (place, as) => {
  const own = place === 'brokered, itself';

  it('is denied every way out of its container', async () => {
    const attempts = await answerOf(trial, `attempts ${place}`, as, ATTEMPTS);
    expect(Object.keys(attempts).length).toBeGreaterThan(30);
    expect(Object.entries(attempts).filter(([, stopped]) => stopped === null)).toEqual([]);
  });

  it('has the listed capabilities and limits, no more, and none of our sockets', async () => {
    expect(Object.keys(NUMBERS).sort()).toEqual([...BASE_CAPABILITIES].sort());
    const mask = Object.values(NUMBERS).reduce((sum, bit) => sum | (1 << bit), 0);
    const seen = await answerOf(trial, `seen ${place}`, as, SEEN);
    const hex = mask.toString(16).padStart(16, '0');
    expect(seen.caps).toMatchObject({ CapPrm: hex, CapEff: hex, CapBnd: hex, CapAmb: '0'.repeat(16) });
    expect([seen.nnp, seen.seccomp]).toEqual(['1', '2']);
    const largest = (own ? 1024 : 256) * 1024 * 1024;
    expect(seen.limits).toMatchObject({
      RLIMIT_NOFILE: [16384, 16384],
      RLIMIT_CORE: [0, 0],
      RLIMIT_FSIZE: [largest, largest],
    });
    // Its own broker's, whose calls name no container.
    expect(seen.sockets).toEqual(own ? ['/run/evaluator/broker.sock'] : []);
    expect(seen.net).toEqual(['lo']);
    expect(seen.tools).toEqual([['/opt/evaluator', expect.any(String), expect.stringMatching(/^ro,/)]]);
    // The three that the engine writes itself, and the tools: nothing of the VM is bound into a trial.
    expect((seen.binds as string[]).sort()).toEqual([
      '/etc/hostname',
      '/etc/hosts',
      '/etc/resolv.conf',
      '/opt/evaluator',
    ]);
    expect(seen.processes).toEqual([1]);
    expect((seen.root as string[]).filter((name) => name.startsWith('.evaluator'))).toEqual([]);
  });

  it('stays in the root of its container, whatever it changes its root to', async () => {
    // The old way out: a directory held open across a chroot, then up and up.
    const seen = await answerOf(
      trial,
      `root ${place}`,
      as,
      `import json, os
os.mkdir('/app/jail'); held = os.open('/', os.O_RDONLY); os.chroot('/app/jail'); os.fchdir(held)
for _ in range(64): os.chdir('..')
os.chroot('.')
print(json.dumps({'own': os.path.exists('/opt/evaluator/entry.sh'), 'host': os.path.exists('/var/lib/docker/overlay2')}))`,
    );
    expect(seen).toEqual({ own: true, host: false });
  });
});
