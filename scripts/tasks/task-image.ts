import { stripVTControlCharacters } from 'node:util';
import { packTar } from '../../guest/engine/tar.ts';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import {
  STAND_IN_LABEL,
  STAND_IN_VALUE,
  TASK_IMAGE_EXPECTATION,
  verifyTaskImage,
} from '../../guest/tasks/image-rules.ts';
import type { ImageBase } from '../../guest/tasks/manifest.ts';
import type { ImageSource } from '../../guest/wire/score-record.ts';
import { baseImages } from './dockerfile.ts';
import type { ImageStore } from './image-store.ts';
import type { SourceTask } from './source.ts';

/** A TDX guest is an x86-64 machine. */
const CONTEXT = 'environment/';
const KEPT_OUTPUT = 8192;
const KEPT_LINES = 6;
// What the engine says when it reached no registry, as opposed to one that said no.
const UNREACHABLE =
  /dial tcp|dial udp|no such host|connection re(?:fused|set)|no route to host|network is unreachable|request canceled|deadline exceeded|timeout|TLS handshake|x509|\bEOF\b/i;

export interface TaskImageRef {
  /** `repo@sha256:…`, or `sha256:…` for an image that was built here. */
  image: string;
  source: ImageSource;
  base: ImageBase;
}

/** The same, with what the image says of itself. */
export interface ResolvedImage extends TaskImageRef {
  workdir: string;
}

/** Registries that did not answer during this bake; each is asked once. */
export type SilentRegistries = Set<string>;

function registryOf(ref: string): string {
  const first = ref.split('/')[0] ?? '';
  return ref.includes('/') && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/** The digest under which a registry answers for a tag; null when the registry does not answer at all. */
async function pullByDigest(
  store: ImageStore,
  tag: string,
  silent: SilentRegistries,
  where: string,
): Promise<TaskImageRef | null> {
  const registry = registryOf(tag);
  if (silent.has(registry)) return null;
  try {
    await store.pull(tag);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (!UNREACHABLE.test(message))
      throw new EvaluatorError(
        'image_pull_failed',
        `${where}: ${registry} does not give ${tag}: ${message}`,
        {
          cause,
        },
      );
    silent.add(registry);
    return null;
  }
  const repository = tag.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
  const digests = await store.repoDigests(tag);
  const image = digests.find((digest) => digest.startsWith(`${repository}@`));
  if (image === undefined)
    throw new EvaluatorError('image_pull_failed', `${where}: the engine knows no registry digest of ${tag}`);
  return { image, source: 'pulled', base: 'registry' };
}

function buildContext(task: SourceTask): Buffer {
  const files = task.files.filter((file) => file.path.startsWith(CONTEXT));
  return packTar([
    { path: './', directory: true },
    ...files.map(({ path, bytes, executable }) => ({
      path: path.slice(CONTEXT.length),
      bytes,
      mode: executable ? (0o755 as const) : (0o644 as const),
    })),
  ]);
}

/** Of what it is named for alone: the same image keeps one name, however often a task is baked, and no two share one. */
export function taskImageName(taskId: string, imageId: string): string {
  const name = taskId
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `cvm-evaluator/task-${name}:${imageId.replace('sha256:', '').slice(0, 32)}`;
}

/** A build prints what the task's author likes, escape sequences included; a terminal must not obey it. */
function lastLines(output: string): string {
  const lines = stripVTControlCharacters(output).split('\n');
  const shown = lines.map((line) => line.replace(/\p{Cc}+/gu, ' ').trim()).filter((line) => line !== '');
  return shown.slice(-KEPT_LINES).join('\n');
}

async function buildImage(store: ImageStore, task: SourceTask): Promise<TaskImageRef> {
  const where = `task ${task.taskId}`;
  let output = '';
  const { imageId, error } = await store
    .build({
      context: buildContext(task),
      of: where,
      timeoutMs: task.config.environment.buildTimeoutSec * 1000,
      onProgress: ({ stream }) => {
        output = (output + (stream ?? '')).slice(-KEPT_OUTPUT);
      },
    })
    .catch((cause) => {
      if (!isEvaluatorError(cause, 'engine_timeout')) throw cause;
      const limit = `build_timeout_sec (${task.config.environment.buildTimeoutSec} s) is over`;
      throw new EvaluatorError('image_build_failed', `${where}: ${limit}\n${lastLines(output)}`, { cause });
    });
  const built = error === null && imageId !== null ? await store.inspect(imageId) : null;
  if (built === null)
    throw new EvaluatorError(
      'image_build_failed',
      `${where}: environment/Dockerfile did not build: ${error ?? 'no image'}\n${lastLines(output)}`,
    );
  // Without a name, an engine's prune would take it.
  await store.tag(built.id, taskImageName(task.taskId, built.id));
  const dockerfile = task.files.find((file) => file.path === `${CONTEXT}Dockerfile`)?.bytes.toString('utf8');
  const bases = await Promise.all(baseImages(dockerfile ?? '').map((name) => store.inspect(name)));
  const isStandIn = [built, ...bases].some((image) => image?.labels[STAND_IN_LABEL] === STAND_IN_VALUE);
  return { image: built.id, source: 'built', base: isStandIn ? 'stand-in' : 'registry' };
}

/**
 * The image a task runs in: the digest of its `docker_image` tag where a registry answers, else built from its
 * Dockerfile and recorded as built (spec/05, Images).
 * @throws image_pull_failed (a registry answered, with a no), image_build_failed, image_declares_volume,
 * image_label_reserved, image_architecture, image_too_large, engine_*.
 */
export async function resolveImage(
  store: ImageStore,
  task: SourceTask,
  silent: SilentRegistries,
): Promise<ResolvedImage> {
  const where = `task ${task.taskId}`;
  const tag = task.config.environment.dockerImage;
  const pulled = tag === null ? null : await pullByDigest(store, tag, silent, where);
  const resolved = pulled ?? (await buildImage(store, task));
  const image = await store.inspect(resolved.image);
  if (image === null)
    throw new EvaluatorError('image_pull_failed', `${where}: the engine has lost ${resolved.image}`);
  verifyTaskImage(image, TASK_IMAGE_EXPECTATION, where);
  return { ...resolved, workdir: image.workingDir || '/' };
}
