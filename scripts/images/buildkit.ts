import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import type { BuildArguments, ImageFiles } from './buildah.ts';
import { outputOf } from './program.ts';

const descriptor = z.object({ digest: z.string().regex(/^sha256:[0-9a-f]{64}$/) });
const index = z.object({ manifests: z.tuple([descriptor]) });
const manifest = z.object({
  config: descriptor,
  layers: z.array(descriptor.extend({ size: z.number().int().nonnegative() })),
});

/** Where an image layout keeps what it names by digest. */
const BLOBS = 'blobs/sha256';

/** The one image of an OCI image layout. @throws build_failed when it holds none, or several. */
export async function readLayout(layout: string): Promise<ImageFiles> {
  const folder = join(layout, BLOBS);
  try {
    const { manifests } = index.parse(JSON.parse(await readFile(join(layout, 'index.json'), 'utf8')));
    const { digest } = manifests[0];
    const bytes = await readFile(join(folder, digest.slice('sha256:'.length)), 'utf8');
    const { config, layers } = manifest.parse(JSON.parse(bytes));
    return { folder, digest, imageId: config.digest, layers };
  } catch (cause) {
    throw new EvaluatorError('build_failed', `${layout}: not an image layout with one image`, { cause });
  }
}

/**
 * Builds with the BuildKit that buildx uses, without a cache, into the OCI image layout `layout`: every file
 * has the time `epoch`, and no attestation that names the machine is part of the image (spec/06).
 * @throws build_unavailable, build_failed.
 */
export async function buildWithBuildKit(build: BuildArguments, layout: string): Promise<ImageFiles> {
  const values = Object.entries(build.values).map(([name, value]) => `--build-arg=${name}=${value}`);
  const flags = ['--no-cache', '--provenance=false', '--sbom=false', '--platform=linux/amd64'];
  const output = `--output=type=oci,tar=false,rewrite-timestamp=true,dest=${layout}`;
  await outputOf(
    'docker',
    ['buildx', 'build', '--progress=plain', ...flags, output, `--file=${build.dockerfile}`, ...values, '.'],
    { cwd: build.context, env: { SOURCE_DATE_EPOCH: String(build.epoch) } },
  );
  return readLayout(layout);
}
