import { setTimeout } from 'node:timers/promises';
import Docker from 'dockerode';
import { EvaluatorError } from '../../guest/errors.ts';

export const DEFAULT_ENGINE_SOCKET = '/var/run/docker.sock';

/** What a bake wants to know of an image. */
export interface InspectedImage {
  id: string;
  os: string;
  architecture: string;
  labels: Readonly<Record<string, string>>;
  volumes: readonly string[];
  repoDigests: readonly string[];
}

function statusOf(error: unknown): number | null {
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' ? status : null;
}

async function deadline(ms: number): Promise<never> {
  await setTimeout(ms, undefined, { ref: false });
  throw new Error(`no answer within ${ms} ms`);
}

/**
 * A client for making images, after a first answer from the engine.
 * @throws engine_unreachable.
 */
export async function connectEngine(socketPath: string): Promise<Docker> {
  const docker = new Docker({ socketPath });
  try {
    await Promise.race([docker.ping(), deadline(10_000)]);
  } catch (cause) {
    throw new EvaluatorError(
      'engine_unreachable',
      `no container engine answers at ${socketPath}; start one (systemctl start docker, or dockerd) and try again`,
      { cause },
    );
  }
  return docker;
}

/** The image that a name or id stands for here; null when there is none. */
export async function inspectImage(docker: Docker, ref: string): Promise<InspectedImage | null> {
  let raw: Docker.ImageInspectInfo;
  try {
    raw = await docker.getImage(ref).inspect();
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw new EvaluatorError(
      'engine_error',
      `the engine does not describe ${ref}: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
  // Absent rather than empty for an image without a configuration.
  const config = raw.Config as Partial<Docker.ImageInspectInfo['Config']> | null | undefined;
  return {
    id: raw.Id,
    os: raw.Os,
    architecture: raw.Architecture,
    labels: config?.Labels ?? {},
    volumes: Object.keys(config?.Volumes ?? {}),
    repoDigests: raw.RepoDigests ?? [],
  };
}
