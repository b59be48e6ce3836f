import { join } from 'node:path';
import { debianMirror } from '../toolchain/mirror.ts';
import { runProgram } from './process.ts';

/** What CPython's build wants; its libraries are in the stand-in, its headers only where it is built. */
const BUILD_PACKAGES = [
  ...['ca-certificates', 'gcc', 'libc6-dev', 'make', 'pkgconf', 'xz-utils'],
  ...['libbz2-dev', 'libffi-dev', 'liblzma-dev', 'libncurses-dev', 'libreadline-dev', 'libsqlite3-dev'],
  ...['libssl-dev', 'uuid-dev', 'zlib1g-dev'],
];

// Short names and no tests, as in the images that are stood for. No profile-guided build: it takes half an hour.
const BUILD = `set -e
cd /root
apt-get source --download-only --quiet python3.13/trixie
tar -xf python3.13_*.orig.tar.xz
cd Python-3.13.*
./configure --quiet --prefix=/usr/local --enable-loadable-sqlite-extensions --with-ensurepip=install
make --silent -j"$(nproc)"
make --silent install
cd /usr/local
rm -rf lib/python3.13/test lib/python3.13/config-3.13-*/libpython3.13.a
find . -depth -name __pycache__ -exec rm -rf '{}' +
for name in python pip pydoc; do ln -s "$name"3 bin/"$name"; done`;

/**
 * Builds CPython 3.13 for /usr/local of Debian bookworm, which has only 3.11, from trixie's source package; apt checks
 * its signature. A few minutes.
 * @returns the tar file, of paths relative to /usr/local.
 * @throws toolchain_unavailable (no Debian archive is known), command_failed.
 */
export async function buildPython(work: string): Promise<string> {
  const file = join(work, 'python.tar');
  const { main } = debianMirror();
  await runProgram('mmdebstrap', [
    '--variant=minbase',
    '--format=null',
    `--include=${BUILD_PACKAGES.join(',')}`,
    `--customize-hook=chroot "$1" sh -c ${shellQuoted(BUILD)}`,
    `--customize-hook=tar --create --sort=name --owner=0 --group=0 --numeric-owner --file=${shellQuoted(file)} --directory="$1/usr/local" .`,
    'bookworm',
    '/dev/null',
    `deb ${main} bookworm main`,
    `deb-src ${main} trixie main`,
  ]);
  return file;
}

function shellQuoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
