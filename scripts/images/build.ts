import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { openCache } from '../../guest/tasks/cache.ts';
import { connectImageStore } from '../tasks/image-store.ts';
import { GUEST_BASE } from './base.ts';
import {
  archiveImage,
  type BuildArguments,
  buildWithBuildah,
  exportImage,
  findDigest,
  type ImageFiles,
  pullImage,
  writeLayout,
} from './buildah.ts';
import { buildWithBuildKit } from './buildkit.ts';
import { firstDifference } from './compare.ts';
import { makeContext } from './context.ts';
import { IMAGES, type ImageRole } from './roles.ts';
import { cloneRepository, exportSource, type Revision, readRevision } from './source.ts';

/** Each gives equal digests for equal inputs; two give different ones (spec/06). */
export const BUILDERS = ['buildah', 'buildkit'] as const;
export type BuilderName = (typeof BUILDERS)[number];

export interface BuildRequest {
  builder: BuilderName;
  role: ImageRole;
  /** A git checkout; what is built is its commit. */
  repository: string;
  /** Names an image by digest, or one of buildah's own store (`localhost/…`). */
  base: string;
  /** The sealed cache; null for the review image. */
  cache: string | null;
  onProgress(message: string): void;
}

export interface BuiltImage extends ImageFiles {
  role: ImageRole;
  revision: Revision;
  base: { name: string; digest: string };
  /** Packages in the image, as paths below its app folder. */
  packages: readonly string[];
  /** Its name in buildah's store; null when another builder made it. */
  name: string | null;
}

/** @throws usage when a cache is missing, or given to an image that takes none. */
export function verifyCacheChoice(role: ImageRole, cache: string | null): void {
  if (IMAGES[role].tasks === 'sealed cache' && cache === null)
    throw new EvaluatorError('usage', `--cache is missing: the ${role} image holds the sealed tasks`);
  if (IMAGES[role].tasks === 'none' && cache !== null)
    throw new EvaluatorError('usage', `--cache: the ${role} image holds no tasks`);
}

const isLocal = (name: string) => name.startsWith('localhost/');

/** The digest in a registry's name; null for an image of buildah's store. @throws build_base_unpinned. */
function pinnedDigest(name: string): string | null {
  if (isLocal(name)) return null;
  const digest = /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
  if (digest !== undefined) return digest;
  throw new EvaluatorError('build_base_unpinned', `--base ${name}: name it by digest, as name@sha256:…`);
}

/** The base's digest, after a pull where a registry has it. @throws build_base_unpinned, build_unavailable. */
export async function readyBase(name: string, builder: BuilderName): Promise<string> {
  const pinned = pinnedDigest(name);
  // BuildKit fetches it itself.
  if (pinned !== null && builder === 'buildkit') return pinned;
  const present = await findDigest(name);
  if (pinned !== null && present === null) await pullImage(name);
  // buildah's own digest would be that of one platform.
  const digest = pinned ?? present;
  if (digest !== null) return digest;
  const remedy =
    name === GUEST_BASE ? 'make it with `evaluator base --for guest`' : 'name another with --base';
  throw new EvaluatorError('build_unavailable', `the base ${name} is not here: ${remedy}`);
}

async function sourceLabel(source: string): Promise<string> {
  const { name, repository } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
  return repository?.url ?? repository ?? name;
}

/** What any builder needs: a folder, its Dockerfile, the time of everything, the values of its ARGs. */
export interface PreparedContext {
  context: string;
  dockerfile: string;
  revision: Revision;
  values: Readonly<Record<string, string>>;
  packages: readonly string[];
}

async function prepare(
  { role, repository, base, cache, onProgress }: BuildRequest,
  baseDigest: string,
  place: { source: string; context: string },
): Promise<PreparedContext> {
  const revision = await readRevision(repository);
  const { commit, epoch } = revision;
  const { source, context } = place;
  onProgress(`${role}: packages of ${commit.slice(0, 12)}`);
  await exportSource(repository, revision, source);
  const packages = await makeContext({ role, source, cache, out: context, epoch });
  const values = { BASE: base, BASE_DIGEST: baseDigest, REVISION: commit, SOURCE: await sourceLabel(source) };
  return { context, dockerfile: IMAGES[role].dockerfile, revision, values, packages };
}

/**
 * Writes a build's context into the folder `context`, for another builder than buildah.
 * @throws build_*, usage, cache_*.
 */
export async function writeContext(request: BuildRequest, context: string): Promise<PreparedContext> {
  verifyCacheChoice(request.role, request.cache);
  const digest = pinnedDigest(request.base) ?? (await readyBase(request.base, 'buildah'));
  return withWorkFolder((work) => prepare(request, digest, { source: join(work, 'source'), context }));
}

/** What an image is called in buildah's store: one name for each commit and cache, so that two builds never meet. */
async function storeName(role: ImageRole, { commit }: Revision, cache: string | null): Promise<string> {
  const tasks = cache === null ? '' : `-${(await openCache(cache)).cacheDigest.slice(0, 12)}`;
  return `localhost/cvm-evaluator/${role}:${commit.slice(0, 12)}${tasks}`;
}

/**
 * Builds one image of a repository's commit below the folder `work`, which the caller removes.
 * @throws build_*, usage, cache_*.
 */
export async function buildImage(request: BuildRequest, work: string): Promise<BuiltImage> {
  const { role, base, builder, cache, onProgress } = request;
  verifyCacheChoice(role, request.cache);
  const digest = await readyBase(base, builder);
  const place = { source: join(work, 'source'), context: join(work, 'context') };
  const { context, dockerfile, revision, values, packages } = await prepare(request, digest, place);
  onProgress(`${role}: building on ${base}`);
  const build: BuildArguments = { context, dockerfile, epoch: revision.epoch, values };
  const built = { role, revision, base: { name: base, digest }, packages };
  const folder = join(work, 'image');
  if (builder === 'buildkit') return { ...(await buildWithBuildKit(build, folder)), ...built, name: null };
  const name = await storeName(role, revision, cache);
  await buildWithBuildah(build, name);
  return { ...(await exportImage(name, folder)), ...built, name };
}

/**
 * Builds twice, from two clones in different folders, one after the other.
 * @throws build_not_reproducible with the first differing entry, and what `buildImage` throws.
 */
export async function buildTwice(request: BuildRequest, work: string): Promise<BuiltImage> {
  const { commit } = await readRevision(request.repository);
  const built: BuiltImage[] = [];
  for (const place of ['first', join('elsewhere', 'second')]) {
    const folder = join(work, place);
    await mkdir(folder, { recursive: true });
    const repository = join(folder, 'clone');
    await cloneRepository(request.repository, commit, repository);
    built.push(await buildImage({ ...request, repository }, folder));
  }
  const [first, second] = built;
  if (!first || !second) throw new EvaluatorError('build_failed', 'nothing was built');
  const difference = await firstDifference(first, second);
  if (difference === null) return second;
  throw new EvaluatorError(
    'build_not_reproducible',
    `two builds of ${commit} differ (${first.digest}, ${second.digest}): ${difference}`,
  );
}

/**
 * Gives an image of buildah's store to a container engine.
 * @returns the name it has there. @throws usage, build_failed, engine_absent.
 */
export async function loadImage(image: BuiltImage, engineSocket: string): Promise<string> {
  const { tag } = IMAGES[image.role];
  const { name } = image;
  if (name === null) throw new EvaluatorError('usage', '--load: only an image that buildah built');
  await loadStored(name, tag, engineSocket);
  return tag;
}

/** Gives what buildah's store has as `name` to a container engine, as `tag`. @throws build_failed, engine_absent. */
export async function loadStored(name: string, tag: string, engineSocket: string): Promise<void> {
  const store = await connectImageStore(engineSocket);
  await withWorkFolder(async (work) => {
    const file = join(work, 'image.tar');
    await archiveImage(name, tag, file);
    const error = await store.load(file);
    if (error !== null) throw new EvaluatorError('build_failed', `the engine took no image: ${error}`);
  });
}

/** Writes the image into `folder` as an OCI image layout, digests unchanged. @throws build_failed. */
export async function saveImage(image: BuiltImage, folder: string): Promise<void> {
  if (image.name === null) await cp(dirname(dirname(image.folder)), folder, { recursive: true });
  else await writeLayout(image.name, folder);
}

/** Runs `body` with a folder of its own, which is gone afterwards. */
export async function withWorkFolder<T>(body: (work: string) => Promise<T>): Promise<T> {
  const work = await mkdtemp(join(tmpdir(), 'evaluator-build-'));
  try {
    return await body(work);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
