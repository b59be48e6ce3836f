import { EvaluatorError } from '../../guest/errors.ts';

/** All bytes of a reply's body. @throws cloud_reply_malformed for more than `maxBytes`. */
export async function bytesUpTo(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the stream.
    if (size > maxBytes)
      throw new EvaluatorError('cloud_reply_malformed', `reply larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
