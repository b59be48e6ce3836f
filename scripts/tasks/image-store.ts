import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { withDeadline } from '../../guest/engine/deadline.ts';
import { dialSocket, type Request } from '../../guest/engine/dial.ts';
import { connectDocker } from '../../guest/engine/docker.ts';
import type { ImageInfo } from '../../guest/engine/port.ts';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import { followProgress, type Progress } from './progress.ts';

export const DEFAULT_ENGINE_SOCKET = '/var/run/docker.sock';

const SHORT_MS = 30_000;
const IMPORT_MS = 10 * 60_000;

const listAnswer = z.array(z.object({ Id: z.string(), RepoTags: z.array(z.string()).nullish() }));
const digestsAnswer = z.object({ RepoDigests: z.array(z.string()).nullish() });

export interface BuildRequest {
  context: Buffer;
  /** What it is for, in the words of an error. */
  of: string;
  timeoutMs: number;
  onProgress(progress: Progress): void;
}

/** How the tools that make images talk to the engine; the guest's port makes none. */
export interface ImageStore {
  /** null when there is no such image. */
  inspect(ref: string): Promise<ImageInfo | null>;
  pull(ref: string): Promise<void>;
  /** `repo@sha256:…` names under which registries know the image. */
  repoDigests(ref: string): Promise<readonly string[]>;
  tag(image: string, name: string): Promise<void>;
  /** Images that carry every one of the labels (`name=value`). */
  findByLabels(labels: readonly string[]): Promise<readonly { id: string; tags: readonly string[] }[]>;
  /** Makes an image of one layer from a tar file. Answers with the engine's error, or null. */
  importTar(file: string, name: string, changes: readonly string[]): Promise<string | null>;
  /** Takes the images of a docker-archive file. Answers with the engine's error, or null. */
  load(file: string): Promise<string | null>;
  /** The engine's classic builder: its cache makes a second build of the same context quick. */
  build(request: BuildRequest): Promise<{ imageId: string | null; error: string | null }>;
}

/** `repo` and `tag` of `repo:tag`; a registry's port is no tag. */
export function splitTag(name: string): { repo: string; tag: string } {
  const colon = name.lastIndexOf(':');
  if (colon <= name.lastIndexOf('/')) return { repo: name, tag: 'latest' };
  return { repo: name.slice(0, colon), tag: name.slice(colon + 1) };
}

/** A connection that failed as a sentence that says what to do about it; any other error as it is. */
export function engineAbsence(socketPath: string, cause: unknown): unknown {
  if (!isEvaluatorError(cause, 'engine_unreachable')) return cause;
  const hint = cause.message.includes('(EACCES)')
    ? `the container engine's socket ${socketPath} is not open to this user: run this as root or as a member of the socket's group, or name another with --engine`
    : `no container engine answers at ${socketPath}; start one (systemctl start docker, or dockerd), or name its socket with --engine`;
  return new EvaluatorError('engine_absent', hint, { cause });
}

/**
 * Connects to an engine that answers.
 * @throws engine_absent, engine_timeout.
 */
export async function connectImageStore(socketPath: string): Promise<ImageStore> {
  const dial = dialSocket(socketPath);
  const engine = connectDocker(socketPath);

  const ask = (call: string, of: string, request: Pick<Request, 'method' | 'path' | 'query'>) =>
    dial.json({ subject: { call, of }, deadlineMs: SHORT_MS, ...request });

  async function upload(
    call: string,
    of: string,
    ms: number,
    request: Pick<Request, 'path' | 'query' | 'upload'>,
    onProgress: (progress: Progress) => void,
  ) {
    return withDeadline(`${call} ${of}`, ms, async (signal) => {
      const stream: Readable = await dial.stream({
        subject: { call, of },
        deadlineMs: ms,
        method: 'POST',
        ...request,
      });
      signal.addEventListener('abort', () => stream.destroy());
      return followProgress(stream, onProgress);
    });
  }

  try {
    await ask('ping', 'engine', { method: 'GET', path: '/version' });
  } catch (cause) {
    throw engineAbsence(socketPath, cause);
  }

  return {
    inspect: (ref) => engine.image(ref),
    pull: (ref) => engine.pull(ref),

    async repoDigests(ref) {
      const answer = await ask('image', ref, { method: 'GET', path: `/images/${ref}/json` });
      return digestsAnswer.parse(answer).RepoDigests ?? [];
    },

    async tag(image, name) {
      await ask('tag', name, { method: 'POST', path: `/images/${image}/tag`, query: splitTag(name) });
    },

    async findByLabels(label) {
      const query = { filters: JSON.stringify({ label }) };
      const answer = listAnswer.parse(
        await ask('images', 'engine', { method: 'GET', path: '/images/json', query }),
      );
      return answer.map((image) => ({ id: image.Id, tags: image.RepoTags ?? [] }));
    },

    async importTar(file, name, changes) {
      const query = { fromSrc: '-', ...splitTag(name), changes: changes.join('\n') };
      const request = { path: '/images/create', query, upload: createReadStream(file) };
      return (await upload('import', name, IMPORT_MS, request, () => {})).error;
    },

    async load(file) {
      const request = { path: '/images/load', query: {}, upload: createReadStream(file) };
      return (await upload('load', file, IMPORT_MS, request, () => {})).error;
    },

    build({ context, of, timeoutMs, onProgress }) {
      const query = { dockerfile: 'Dockerfile', rm: '1', forcerm: '1' };
      return upload('build', of, timeoutMs, { path: '/build', query, upload: context }, onProgress);
    },
  };
}
