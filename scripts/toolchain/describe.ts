import type { Toolchain } from './build.ts';

/** One line for a person: what was built, and whether it is what the lock names. */
export function toolchainLine(toolchain: Toolchain): string {
  const { digest, sizeBytes, source, debian, interpreters, python } = toolchain;
  const size = `${(sizeBytes / 1e6).toFixed(1)} MB`;
  const others = interpreters.map(({ version }) => `, Python ${version}`).join('');
  const parts = `${debian.length} Debian packages, ${python.length} of Python${others}`;
  const note =
    source === 'locked' ? '' : '; not the versions of debian.lock, which the archive no longer serves';
  return `toolchain ${digest}: ${size}, ${parts}${note}`;
}

/** Everything that is in it, by exact version, one a line. */
export function packageLines(toolchain: Toolchain): string[] {
  return [
    ...toolchain.debian.map(({ name, version, sha256 }) => `debian ${name} ${version} ${sha256}`),
    ...toolchain.interpreters.map(
      ({ version, artifact, sha256 }) => `interpreter ${version} ${artifact} ${sha256}`,
    ),
    ...toolchain.python.map((key) => `python ${key.replace('==', ' ')}`),
  ];
}
