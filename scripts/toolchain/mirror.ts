import { spawnSync } from 'node:child_process';
import { EvaluatorError } from '../../guest/errors.ts';

/** Addresses of a Debian archive and of its security archive. */
export type DebianMirror = { main: string; security: string };

/**
 * The mirror that this machine's own apt uses, or else its mmdebstrap (on Ubuntu, say), or the one that EVALUATOR_DEBIAN_MIRROR names (its security archive
 * is looked for beside it, as `ADDRESS-security`).
 * @throws toolchain_unavailable when the machine knows none.
 */
export function debianMirror(env: NodeJS.ProcessEnv = process.env): DebianMirror {
  const named = env.EVALUATOR_DEBIAN_MIRROR?.replace(/\/+$/, '');
  if (named) return { main: named, security: `${named}-security` };
  const found = findMirror(indexTargets()) ?? findMirror(bootstrapSources());
  if (found !== null) return found;
  throw new EvaluatorError(
    'toolchain_unavailable',
    "This machine's apt has no Debian archive: set EVALUATOR_DEBIAN_MIRROR to the address of one, without its suite.",
  );
}

function indexTargets(): string {
  const format = ['--format', '$(REPO_URI)', 'Created-By: Packages'];
  return spawnSync('apt-get', ['indextargets', ...format], { encoding: 'utf8' }).stdout ?? '';
}

/** What mmdebstrap would put into a new system's sources.list; the system itself is given up at once. */
function bootstrapSources(): string {
  const hook = '--setup-hook=cat "$1/etc/apt/sources.list"; false';
  const options = ['--quiet', '--variant=custom', hook, 'trixie', '/dev/null'];
  // mmdebstrap sends what its hooks print to stderr.
  const { stderr } = spawnSync('mmdebstrap', options, { encoding: 'utf8' });
  return (stderr ?? '').replaceAll(/^deb (\S+) .*$/gm, '$1');
}

/** `targets`: addresses of package archives, one a line. A Debian archive's ends with /debian, by custom. */
export function findMirror(targets: string): DebianMirror | null {
  const addresses = targets.split('\n').map((line) => line.trim().replace(/\/+$/, ''));
  const main = addresses.find((address) => /\/debian$/.test(address));
  if (main === undefined) return null;
  const security = addresses.find((address) => /\/debian-security$/.test(address));
  return { main, security: security ?? `${main}-security` };
}
