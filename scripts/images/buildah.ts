import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import { orRefuse, outputOf } from './program.ts';

const inspected = z.object({ FromImageID: z.string(), FromImageDigest: z.string() });
const manifest = z.object({
  config: z.object({ digest: z.string() }),
  layers: z.array(z.object({ digest: z.string(), size: z.number() })),
});

const buildah = (cwd: string, ...args: string[]) => outputOf('buildah', args, { cwd, env: {} });

export interface BuildArguments {
  context: string;
  dockerfile: string;
  /** Seconds since the epoch, for every file and the image itself. */
  epoch: number;
  /** Values of the Dockerfile's ARGs. */
  values: Readonly<Record<string, string>>;
}

/** An image as files: manifest.json, the configuration and the compressed layers, each named by its digest. */
export interface ImageFiles {
  folder: string;
  /** `sha256:…` of the manifest. */
  digest: string;
  /** `sha256:…` of the configuration: the id an engine knows the image by. */
  imageId: string;
  layers: readonly { digest: string; size: number }[];
}

/** Builds `tag` without a cache of earlier builds or a registry. @throws build_failed, build_unavailable. */
export async function buildWithBuildah(build: BuildArguments, tag: string): Promise<void> {
  const values = Object.entries(build.values).map(([name, value]) => `--build-arg=${name}=${value}`);
  const flags = [
    '--isolation=chroot',
    // Docker's form names the container of the build: no two builds would be equal.
    '--format=oci',
    // Not the builder's own label: an image says what it is made of.
    '--identity-label=false',
    // Its hashes of what was copied differ from machine to machine, where the layers are equal.
    '--omit-history',
    '--no-cache',
    '--pull=false',
  ];
  const names = [`--timestamp=${build.epoch}`, `--file=${build.dockerfile}`, `--tag=${tag}`];
  await buildah(build.context, 'build', '--quiet', ...flags, ...names, ...values, '.');
}

/** The digest of an image in buildah's store; null when it is not there. */
export async function findDigest(image: string): Promise<string | null> {
  const found = await buildah('/', 'images', '--quiet', '--no-trunc', '--filter', `reference=${image}`);
  if (found.trim() === '') return null;
  const answer = inspected.parse(JSON.parse(await buildah('/', 'inspect', '--type', 'image', image)));
  return answer.FromImageDigest;
}

/** Brings an image that a registry has by digest. @throws build_unavailable. */
export async function pullImage(image: string): Promise<void> {
  await orRefuse(
    buildah('/', 'pull', '--quiet', `docker://${image}`),
    'build_unavailable',
    `no registry answered for ${image}: name another base with --base, or make one with evaluator base --for guest`,
  );
}

/** Writes an image of buildah's store as files. @throws build_failed. */
export async function exportImage(image: string, folder: string): Promise<ImageFiles> {
  await buildah('/', 'push', '--quiet', image, `dir:${folder}`);
  const bytes = await readFile(join(folder, 'manifest.json'));
  const parsed = manifest.safeParse(JSON.parse(bytes.toString('utf8')));
  if (!parsed.success) throw new EvaluatorError('build_failed', `${image} has a manifest of another form`);
  const { config, layers } = parsed.data;
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  return { folder, digest, imageId: config.digest, layers };
}

/** Writes an image as a file that an engine loads, where it is called `tag`. @throws build_failed. */
export async function archiveImage(image: string, tag: string, file: string): Promise<void> {
  await buildah('/', 'push', '--quiet', image, `docker-archive:${file}:${tag}`);
}

/** Writes an image as an OCI image layout. @throws build_failed. */
export async function writeLayout(image: string, folder: string): Promise<void> {
  await buildah('/', 'push', '--quiet', image, `oci:${folder}`);
}

/** Forgets an image of buildah's store. @throws build_failed. */
export async function removeImage(image: string): Promise<void> {
  await buildah('/', 'rmi', '--force', image);
}
