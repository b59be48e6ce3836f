import { describe, expect, it } from 'vitest';
import { initScript, PRE_LAUNCH_SCRIPT } from '../../compose/boot-scripts.ts';
import { type Boot, boot, hasDeviceMapper } from '../support/boot-machine.ts';

const SCRIPT = initScript(['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY']);
const ENV = 'EVAL_PLAN=eyJhIjoxfQ\nEVAL_RUN_TOKEN=a-b_c=\nMODEL_KEY=\n';

const start = (differing: Partial<Boot>) =>
  boot({
    script: SCRIPT,
    env: ENV,
    shell: 'bash',
    cryptsetup: 'plain-mapper',
    before: ':',
    after: ':',
    ...differing,
  });

/** The boot ended in the script, with that sentence and nothing after it. */
async function expectRefused(differing: Partial<Boot>, why: RegExp): Promise<void> {
  const { code, stdout, stderr } = await start(differing);
  expect(stderr).toMatch(why);
  expect(stderr).toContain('the boot ends here');
  expect(stdout).not.toContain('booted');
  expect(code).toBe(1);
}

// spec/06, "State of earlier boots"
describe('init script', { timeout: 120_000 }, () => {
  it.each(['bash', 'dash'] as const)(
    'lets a clean boot go on, under %s, and leaves nothing there',
    async (shell) => {
      const after = 'type evaluator_fail >/dev/null 2>&1 && echo left behind; umask; echo "$PATH"';
      const booted = await start({ shell, before: 'PATH=/usr/local/bin:$PATH; umask 022', after });
      expect(booted.stderr).toContain('engine state fresh');
      expect(booted).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^booted\n0022\n\/usr\/local\/bin:/),
      });
    },
  );

  describe('variables', () => {
    it.each<[string, string | Buffer | null, RegExp]>([
      ['a carriage return that starts another variable', 'EVAL_PLAN=a\rBASH_ENV=/x\n', /bytes/],
      ['another variable', `${ENV}BASH_ENV=x\n`, /line/],
      ['a longer name', 'EVAL_PLAN_B=x\n', /line/],
      ['a name that only ends as ours', 'XEVAL_PLAN=x\n', /line/],
      ['no name', '=x\n', /line/],
      ['no equals sign', 'EVAL_PLAN\n', /line/],
      ['an empty line', `${ENV}\n`, /line/],
      ['a quoted value', 'EVAL_PLAN="x"\n', /bytes/],
      ['a space', 'EVAL_PLAN=a b\n', /bytes/],
      ['a continued line', 'EVAL_PLAN=a\\\nBASH_ENV=x\n', /bytes/],
      ['a comment', '#EVAL_PLAN=x\n', /bytes/],
      ['a NUL', 'EVAL_PLAN=a\0\n', /bytes/],
      ['a byte above ASCII', Buffer.from('EVAL_PLAN=\xe9\n', 'latin1'), /bytes/],
      ['a letter above ASCII', 'EVAL_PLAN=é\n', /bytes/],
      ['a last line without its end', `${ENV}LD_PRELOAD=x`, /line/],
      ['no file at all', null, /missing/],
    ])('refuses %s', async (_, env, why) => {
      await expectRefused({ env, before: 'export LC_ALL=C.UTF-8' }, why);
    });
  });

  describe('engine state', () => {
    it('is this boot’s own, on a key of this boot, and what was there is neither seen nor kept', async () => {
      const before = 'cat /var/lib/docker/earlier';
      const after = `
        ls -A /var/lib/docker /var/lib/containerd
        find /dstack/persistent -name earlier -o -name '*.img'
        echo new >/var/lib/docker/new; find /dstack/persistent -name new
        grep -c '^/dev/mapper/evaluator-state /var/lib/[a-z]* ext4 ' /proc/mounts
        od -An -tx1 -v /run/key | tr -d ' \\n'`;
      const [one, other] = [await start({ before, after }), await start({ before, after })];
      const seen = (text: string) =>
        /^planted\nbooted\n\/var\/lib\/containerd:\n\n\/var\/lib\/docker:\n2\n([0-9a-f]{128})$/.exec(
          text,
        )?.[1];
      expect(seen(one.stdout), one.stdout).toBeDefined();
      expect(seen(other.stdout), other.stdout).toBeDefined();
      expect(seen(one.stdout)).not.toBe(seen(other.stdout));
    });

    it('asks for AES-XTS under a key of 512 bits that comes through a pipe', async () => {
      const { stdout } = await start({ after: 'cat /run/cryptsetup-arguments' });
      expect(stdout).toContain(
        '--type plain --cipher aes-xts-plain64 --key-size 512 --key-file - /dstack/persistent/evaluator-state.img',
      );
    });

    it(`with the kernel's own dm-crypt: ${hasDeviceMapper ? 'boots' : 'without one, ends the boot'}`, async () => {
      if (!hasDeviceMapper) return expectRefused({ cryptsetup: 'real' }, /dm-crypt refuses/);
      const { stdout } = await start({ cryptsetup: 'real', after: 'cryptsetup status evaluator-state' });
      expect(stdout).toMatch(/^booted\n.*type:\s+PLAIN\n.*cipher:\s+aes-xts-plain64/s);
    });

    it('an engine that runs already, or swap, ends the boot', async () => {
      await expectRefused(
        { before: 'cp /bin/sleep /run/dockerd; /run/dockerd 300 &' },
        /dockerd runs already/,
      );
      const swap = 'printf "head\\n/dev/x\\n" >/run/swaps; mount --bind /run/swaps /proc/swaps';
      await expectRefused({ before: swap }, /swap is on/);
    });

    it('a planted link is not followed', async () => {
      const plant =
        'cd /dstack/persistent/var; umount /var/lib/docker /var/lib/containerd; mv lib other; ln -s /etc lib; mkdir -p /etc/docker; cd /dstack';
      await expectRefused({ before: plant }, /docker is a link/);
    });
  });

  it('a container reaches no address of the VM, and did before', async () => {
    const lan = (bridge: string, net: string) => `
      ip link add ${bridge} type bridge; ip addr add 10.${net}.0.1/24 dev ${bridge}; ip link set ${bridge} up
      ip netns add c${net}; ip link add v${net} type veth peer name e${net} netns c${net}
      ip link set v${net} master ${bridge} up; ip -n c${net} addr add 10.${net}.0.2/24 dev e${net}
      ip -n c${net} link set e${net} up; ip -n c${net} route add default via 10.${net}.0.1`;
    const ping = (net: string, to: string, wait: number) =>
      `ip netns exec c${net} busybox ping -c1 -W${wait} ${to} >/dev/null && echo reached || echo dropped`;
    const before = `
      ${lan('docker0', '1')}; ${lan('br-0123456789ab', '2')}
      ip addr add 10.9.0.1/32 dev lo
      ${ping('1', '10.1.0.1', 20)}; ${ping('2', '10.2.0.1', 20)}`;
    const after = `
      ${ping('1', '10.1.0.1', 1)}; ${ping('2', '10.2.0.1', 1)}; ${ping('2', '10.9.0.1', 1)}
      iptables -nvxL INPUT | awk '/DROP/ { print $6, $1 }' | sort
      ip6tables -S INPUT`;
    const { stdout, stderr } = await start({ before, after });
    expect(stdout, stderr).toBe(
      [
        'reached\nreached\nbooted\ndropped\ndropped\ndropped\nbr-+ 2\ndocker0 1',
        '-P INPUT ACCEPT\n-A INPUT -i br-+ -j DROP\n-A INPUT -i docker0 -j DROP\n',
      ].join('\n'),
    );
  });

  it.each(['iptables', 'ip6tables', 'fallocate', 'cryptsetup', 'mkfs.ext4', 'mount', 'umount'])(
    'ends the boot when %s fails',
    async (tool) => {
      const before = `ln -sf /bin/false "$(command -v ${tool})"`;
      await expectRefused({ before }, /init-script: /);
    },
  );
});

describe('pre-launch script', { timeout: 120_000 }, () => {
  const after = `${PRE_LAUNCH_SCRIPT}\necho launched`;

  it('lets containers start on the state of this boot', async () => {
    expect(await start({ after })).toMatchObject({ code: 0, stdout: 'booted\nlaunched\n' });
  });

  it('starts nothing on an OS that has passed over the init script', async () => {
    const passed = await start({ script: ':', after });
    expect(passed).toMatchObject({ code: 1, stdout: 'booted\n' });
    expect(passed.stderr).toContain("/var/lib/docker is not this boot's own");
  });
});
