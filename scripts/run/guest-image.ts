import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from '../../guest/engine/port.ts';
import { readSingleFile } from '../../guest/engine/read-file.ts';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import { verifyEngineFloor } from '../../guest/stages/engine-floor.ts';
import { parseMechanism } from '../../guest/wire/mechanism.ts';
import { GUEST_BASE } from '../images/base.ts';
import { type BuiltImage, buildImage, loadStored } from '../images/build.ts';
import { buildWithBuildah, exportImage, removeImage } from '../images/buildah.ts';
import { APP_DIRECTORY } from '../images/roles.ts';
import { hasUncommittedChanges } from '../images/source.ts';
import { splitTag } from '../tasks/image-store.ts';
import { deskImage } from './desk-engine.ts';
import type { Desk } from './guest-container.ts';
import { SHIPPED_MECHANISM } from './guest-process.ts';
import { localMechanism } from './local-mechanism.ts';
import { ROOT } from './simulator.ts';

const MECHANISM = `${APP_DIRECTORY}/guest/mechanism.yaml`;
const MAX_MECHANISM_BYTES = 1024 * 1024;

/** A guest image that an engine has. */
export interface GuestImage {
  /** As the engine knows it. */
  id: string;
  /** `repo@sha256:…`: by its manifest, or by its id where no registry has given it a digest. */
  ref: string;
  /** The commit that its labels name. */
  revision: string;
  /** The mechanism's bytes in it. */
  mechanism: Buffer;
}

async function mechanismOf({ engine, id: deskId, labels }: Desk, image: string): Promise<Buffer> {
  const id = await engine.createFrom(`cvm-evaluator-look-${deskId}`, { Image: image, Labels: labels });
  const found = await readSingleFile(engine, id, MECHANISM, MAX_MECHANISM_BYTES);
  await engine.remove(id);
  if (found.kind === 'file') return found.bytes;
  throw new EvaluatorError(
    'usage',
    `--image ${image}: no eval image of this project: ${MECHANISM} is ${found.kind}`,
  );
}

async function described(desk: Desk, name: string, ref: string): Promise<GuestImage> {
  const image = await desk.engine.image(name);
  if (image === null)
    throw new EvaluatorError('usage', `--image ${name}: not on this engine; pull it, or leave the name out`);
  const revision = image.labels['org.opencontainers.image.revision'] ?? 'unknown';
  return { id: image.id, ref, revision, mechanism: await mechanismOf(desk, image.id) };
}

/** The image that an engine has under a name, a digest or an id. @throws usage, engine_*. */
export async function findGuestImage(desk: Desk, name: string): Promise<GuestImage> {
  const image = await desk.engine.image(name);
  const digests = image === null ? [] : await desk.engine.repoDigests(name);
  const { repo } = splitTag(name.split('@')[0] ?? name);
  return described(desk, name, digests[0] ?? `${repo}@${image?.id}`);
}

/** Whether the engine is one that the shipped mechanism takes. @throws engine_*. */
export async function meetsShippedFloors(engine: Pick<Engine, 'info'>): Promise<boolean> {
  const { mechanism } = parseMechanism(await readFile(SHIPPED_MECHANISM));
  const info = await engine.info();
  try {
    verifyEngineFloor(info, mechanism.floors);
    return true;
  } catch (error) {
    if (isEvaluatorError(error, 'engine_below_floor')) return false;
    throw error;
  }
}

type Stored = Pick<BuiltImage, 'digest'> & { name: string };

/** One layer on the built image: a desk's mechanism in place of the shipped one. */
async function withDeskMechanism(image: Stored, epoch: number, work: string): Promise<Stored> {
  const context = join(work, 'desk-layer');
  await mkdir(context);
  await writeFile(join(context, 'mechanism.yaml'), localMechanism(await readFile(SHIPPED_MECHANISM)));
  await writeFile(
    join(context, 'Dockerfile'),
    `ARG IMAGE\nFROM \${IMAGE}\nCOPY mechanism.yaml ${MECHANISM}\n`,
  );
  const name = image.name.replace('/eval:', '/eval-desk:');
  await buildWithBuildah({ context, dockerfile: 'Dockerfile', epoch, values: { IMAGE: image.name } }, name);
  return { ...(await exportImage(name, join(work, 'desk-image'))), name };
}

/**
 * Builds the eval image of the checked-out commit with a sealed cache, and gives it to the engine. On an engine below
 * the shipped mechanism's floors the image gets one layer more, with a desk's floors, and so another digest.
 * @param cache `made`: by this run alone, the image goes with the desk; `given`: it stays for other runs.
 * @throws build_*, cache_*, engine_*.
 */
export async function buildGuestImage(
  desk: Desk,
  cache: { directory: string; origin: 'given' | 'made' },
  work: string,
  onProgress: (message: string) => void,
): Promise<GuestImage> {
  if (await hasUncommittedChanges(ROOT)) onProgress('changes that are not committed are not in the image');
  const request = { builder: 'buildah', role: 'eval', repository: ROOT, base: GUEST_BASE } as const;
  const built = await buildImage({ ...request, cache: cache.directory, onProgress }, join(work, 'image'));
  const shipped: Stored = { digest: built.digest, name: built.name ?? '' };
  const isShipped = await meetsShippedFloors(desk.engine);
  if (!isShipped)
    onProgress('this engine is below the floors of the mechanism: a desk mechanism in its place');
  const image = isShipped ? shipped : await withDeskMechanism(shipped, built.revision.epoch, work);
  const repo = splitTag(image.name).repo;
  const tag = cache.origin === 'made' ? deskImage(desk.id) : image.name.slice('localhost/'.length);
  onProgress(`loading ${repo}@${image.digest}`);
  await loadStored(image.name, tag, desk.engineSocket);
  if (cache.origin === 'made') for (const { name } of new Set([image, shipped])) await removeImage(name);
  return described(desk, tag, `${repo}@${image.digest}`);
}
