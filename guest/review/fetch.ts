import { type Code, EvaluatorError } from '../errors.ts';
import { askPatiently, PATIENCE_MS, statusOf } from './ask.ts';
import type { ReviewHost } from './config.ts';

/**
 * One document of the challenge, size-capped.
 * @throws the given code when it is not handed out.
 */
export async function fetchBytes(
  document: { name: string; path: string; maxBytes: number; code: Code },
  host: ReviewHost,
): Promise<Buffer> {
  const reply = await askPatiently(
    {
      method: 'GET',
      path: document.path,
      body: null,
      maxReplyBytes: document.maxBytes,
      untilMs: host.nowMs() + PATIENCE_MS,
    },
    host,
  );
  if (reply?.status === 200) return reply.body;
  throw new EvaluatorError(document.code, `${document.name}: GET ${document.path}: ${statusOf(reply)}`);
}
