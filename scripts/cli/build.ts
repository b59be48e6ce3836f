import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { GUEST_BASE } from '../images/base.ts';
import {
  BUILDERS,
  type BuilderName,
  type BuildRequest,
  type BuiltImage,
  buildImage,
  buildTwice,
  loadImage,
  saveImage,
  verifyCacheChoice,
  withWorkFolder,
  writeContext,
} from '../images/build.ts';
import { IMAGE_ROLES, type ImageRole } from '../images/roles.ts';
import { hasUncommittedChanges } from '../images/source.ts';
import { DEFAULT_ENGINE_SOCKET } from '../tasks/image-store.ts';
import { parseOptions, printHelp } from './arguments.ts';
import { verifyWritable } from './paths.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const USAGE =
  'evaluator build [--image eval|review] [--base REF] [--cache DIR] [--twice] [--builder buildah|buildkit] [--out DIR] [--load] [--engine SOCKET] [--json]\n       evaluator build --context DIR [--image eval|review] [--base REF] [--cache DIR]';
const HELP = `usage: ${USAGE}

Builds an image of the commit that is checked out: the same commit, base, cache and builder give the same digest.
Changes that are not committed are not in it. Nothing is pushed.

  --image ROLE     eval (the default) or review
  --base REF       the image with Node 24 to build on, by digest
                   (default ${GUEST_BASE}, made by \`evaluator base --for guest\`)
  --cache DIR      the sealed cache that the eval image holds
  --twice          build from two clones in different folders; fails with the first entry in which they differ
  --builder NAME   buildah (the default), or buildkit: what \`docker buildx\` uses, as a release does.
                   Digests of the two cannot be compared
  --out DIR        keep the image in DIR, as an OCI image layout
  --context DIR    only write what a builder needs into DIR; its arguments are a JSON object on stdout
  --load           give the image to the container engine too (buildah)
  --engine SOCKET  the container engine (default ${DEFAULT_ENGINE_SOCKET})
  --json           one JSON object on stdout

exit codes: 0 built, 2 usage or refused input, 5 infrastructure, or two builds that differ
`;

function parseRole(text: string): ImageRole {
  const role = IMAGE_ROLES.find((known) => known === text);
  if (role !== undefined) return role;
  throw new EvaluatorError('usage', `--image: ${IMAGE_ROLES.join(' or ')}\nusage: ${USAGE}`);
}

function parseBuilder(text: string): BuilderName {
  const builder = BUILDERS.find((known) => known === text);
  if (builder !== undefined) return builder;
  throw new EvaluatorError('usage', `--builder: ${BUILDERS.join(' or ')}\nusage: ${USAGE}`);
}

function show(image: BuiltImage, extra: { twice: boolean; loaded: string | null }): void {
  process.stdout.write(
    `${JSON.stringify({
      image: image.role,
      digest: image.digest,
      image_id: image.imageId,
      name: image.name,
      loaded: extra.loaded,
      twice: extra.twice,
      revision: image.revision.commit,
      source_date_epoch: image.revision.epoch,
      base: image.base,
      layers: image.layers,
      packages: image.packages.length,
    })}\n`,
  );
}

/**
 * `evaluator build`: a measured image of the checked-out commit.
 * @returns the exit code.
 * @throws usage, build_*, cache_*, engine_absent.
 */
export async function build(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    {
      image: { type: 'string', default: 'eval' },
      base: { type: 'string', default: GUEST_BASE },
      cache: { type: 'string' },
      twice: { type: 'boolean', default: false },
      builder: { type: 'string', default: 'buildah' },
      out: { type: 'string' },
      context: { type: 'string' },
      load: { type: 'boolean', default: false },
      engine: { type: 'string', default: DEFAULT_ENGINE_SOCKET },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const onProgress = (message: string) => void process.stderr.write(`${message}\n`);
  const request: BuildRequest = {
    builder: parseBuilder(values.builder),
    role: parseRole(values.image),
    repository: REPOSITORY,
    base: values.base,
    cache: values.cache ?? null,
    onProgress,
  };
  verifyCacheChoice(request.role, request.cache);
  for (const option of ['out', 'context'] as const)
    if (values[option] !== undefined) verifyWritable('build', option, values[option], 'new folder');
  if (await hasUncommittedChanges(REPOSITORY)) onProgress('changes that are not committed are not built');
  if (values.context !== undefined) {
    const { context, dockerfile, revision, values: args } = await writeContext(request, values.context);
    const { commit, epoch } = revision;
    process.stdout.write(
      `${JSON.stringify({ context, dockerfile, revision: commit, source_date_epoch: epoch, build_args: args })}\n`,
    );
    return 0;
  }
  const make = values.twice ? buildTwice : buildImage;
  return withWorkFolder(async (work) => {
    const image = await make(request, work);
    if (values.out !== undefined) await saveImage(image, values.out);
    const loaded = values.load ? await loadImage(image, values.engine) : null;
    if (values.json) show(image, { twice: values.twice, loaded });
    else process.stdout.write(`${image.digest}  ${loaded ?? image.name ?? values.out ?? ''}\n`);
    return 0;
  });
}
