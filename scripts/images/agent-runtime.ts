import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { connectImageStore } from '../tasks/image-store.ts';
import { withWorkFolder } from './build.ts';
import { archiveImage, buildWithBuildah, removeImage } from './buildah.ts';
import { outputOf } from './program.ts';

/** What the sandbox of a brokered agent is made from: its name on a container engine. */
export const AGENT_RUNTIME = 'cvm-evaluator/agent-runtime:python3-node24';

const SUITE = 'trixie';
const PACKAGES = ['ca-certificates', 'libgcc-s1', 'libstdc++6', 'python3'];
/** 2026-01-01: packages of one version give one image, whenever they are unpacked. */
const EPOCH = 1_767_225_600;
/** The building machine's, what differs from run to run, and what no agent reads. */
const REMOVED = [
  ...['etc/hostname', 'etc/resolv.conf', 'etc/machine-id', 'dev', 'etc/apt', 'var/lib/apt', 'var/lib/dpkg'],
  ...['var/cache', 'var/log', 'var/lib/systemd'],
  ...['doc', 'info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`),
];
const DOCKERFILE = `FROM scratch
COPY root/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LANG=C.UTF-8
CMD ["/usr/bin/python3"]
`;

export interface AgentRuntimeImage {
  tag: string;
  /** `sha256:…`, the id that a plan names. */
  image: string;
  action: 'kept' | 'made';
}

async function unpackPackages(root: string, node: string): Promise<void> {
  // The record of what is in the image: names and versions of its packages.
  const record = `chroot "$1" dpkg-query --show > "$1"/etc/runtime-packages`;
  const options = ['--quiet', '--variant=essential', '--format=directory', `--include=${PACKAGES.join(',')}`];
  await outputOf('mmdebstrap', [...options, `--customize-hook=${record}`, SUITE, root], {
    cwd: '/',
    env: { SOURCE_DATE_EPOCH: String(EPOCH) },
  });
  for (const path of REMOVED) await rm(join(root, path), { recursive: true, force: true });
  await mkdir(join(root, 'usr/local/bin'), { recursive: true });
  await copyFile(node, join(root, 'usr/local/bin/node'));
}

/**
 * Makes the agent runtime's image from Debian packages and the locked Node, and gives it to a container engine.
 * @param node the node binary that goes into it.
 * @throws engine_absent, base_unavailable, build_unavailable, build_failed.
 */
export async function makeAgentRuntime(
  node: string,
  engineSocket: string,
  onProgress: (message: string) => void,
): Promise<AgentRuntimeImage> {
  const store = await connectImageStore(engineSocket);
  const present = await store.inspect(AGENT_RUNTIME);
  if (present !== null) return { tag: AGENT_RUNTIME, image: present.id, action: 'kept' };
  if (process.getuid?.() !== 0)
    throw new EvaluatorError('base_unavailable', 'making a base image needs root: run this as root (sudo)');
  onProgress(`making ${AGENT_RUNTIME} from ${SUITE}`);
  return withWorkFolder(async (work) => {
    await unpackPackages(join(work, 'root'), node);
    await writeFile(join(work, 'Dockerfile'), DOCKERFILE);
    const built = `localhost/${AGENT_RUNTIME}`;
    await buildWithBuildah({ context: work, dockerfile: 'Dockerfile', epoch: EPOCH, values: {} }, built);
    const file = join(work, 'image.tar');
    await archiveImage(built, AGENT_RUNTIME, file);
    await removeImage(built);
    const error = await store.load(file);
    const image = error === null ? await store.inspect(AGENT_RUNTIME) : null;
    if (image === null) throw new EvaluatorError('build_failed', `the engine took no image: ${error ?? ''}`);
    return { tag: AGENT_RUNTIME, image: image.id, action: 'made' };
  });
}
