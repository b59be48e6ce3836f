import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** One message of the engine's JSON-lines progress streams (build, pull, import). */
export interface Progress {
  stream?: string;
  status?: string;
  error?: string;
  aux?: { ID?: string };
}

function parseLine(line: string): Progress | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Progress) : null;
  } catch {
    return null;
  }
}

/**
 * Reads a progress stream to its end. The engine answers 200 first and reports a failure inside the stream.
 * @returns the image id the engine named last (null: none) and the error it reported (null: none).
 */
export async function followProgress(
  stream: Readable,
  onProgress: (progress: Progress) => void,
): Promise<{ imageId: string | null; error: string | null }> {
  let imageId: string | null = null;
  let error: string | null = null;
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  stream.once('error', () => lines.close());
  for await (const line of lines) {
    const progress = parseLine(line);
    if (progress === null) continue;
    imageId = progress.aux?.ID ?? imageId;
    error = progress.error ?? error;
    onProgress(progress);
  }
  if (stream.errored) throw stream.errored;
  return { imageId, error };
}
