import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MACHINE = join(import.meta.dirname, 'boot-machine.sh');

/** Whether this kernel has a device mapper. A dstack kernel has: its data disk is LUKS. */
export const hasDeviceMapper = readFileSync('/proc/misc', 'ascii').includes('device-mapper');

/** Maps without encrypting, where the kernel cannot: every other step then runs for real. */
const PLAIN_MAPPER = `#!/bin/sh
set -eu
echo "$*" >/run/cryptsetup-arguments
[ "$(head -c 64 | tee /run/key | wc -c)" -eq 64 ]
for name; do image=\${last:-}; last=$name; done
device=$(losetup -f)
losetup "$device" "$image"
: >"/run/loop-\${device##*/}"
mknod "/dev/mapper/$name" b 7 "\${device##*/loop}"
`;

export interface Boot {
  script: string;
  /** The OS's decrypted variables; null: no such file. */
  env: string | Buffer | null;
  shell: 'bash' | 'dash';
  /** `real`: the machine's own cryptsetup, working or not. */
  cryptsetup: 'real' | 'plain-mapper';
  /** Shell text run just before and, if the script let the boot go on, just after. */
  before: string;
  after: string;
}

export interface Booted {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs an init script in a machine of its own: mounts, network, processes, a data disk. Needs root. */
export async function boot({ script, env, shell, cryptsetup, before, after }: Boot): Promise<Booted> {
  const work = await mkdtemp(join(tmpdir(), 'cvm-boot-'));
  try {
    const files: Record<string, string | Buffer> = { 'init-script': script, before, after };
    if (env !== null) files['decrypted-env'] = env;
    if (cryptsetup === 'plain-mapper') files.cryptsetup = PLAIN_MAPPER;
    for (const [name, content] of Object.entries(files)) await writeFile(join(work, name), content);
    const args = ['--mount', '--net', '--pid', '--fork', '--kill-child', 'sh', MACHINE, work, shell];
    return await new Promise((resolve) => {
      execFile('unshare', args, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
