import { EvaluatorError } from '../../guest/errors.ts';
import { MAX_RESULT_BYTES } from '../../guest/wire/result.ts';
import { printable } from '../../guest/wire/scalars.ts';
import { bytesUpTo } from './bounded.ts';

/** A RESULT line and a journal beside it. */
export const MAX_LOG_BYTES = MAX_RESULT_BYTES + 16 * 1024 * 1024;
/** More lines than a journal of the largest plan has. */
const MAX_LINES = 250_000;

function logUrl(address: string, apiUrl: string): URL {
  let url: URL | null = null;
  try {
    url = new URL(address);
  } catch {
    // Said below.
  }
  // The address is the cloud's word: it must not lead into the operator's own network in clear text.
  if (!url || (url.protocol !== 'https:' && url.origin !== new URL(apiUrl).origin))
    throw new EvaluatorError('cloud_reply_malformed', `log: ${printable(address)} is no https address`);
  for (const flag of ['text', 'bare']) url.searchParams.set(flag, '');
  url.searchParams.set('tail', String(MAX_LINES));
  return url;
}

/**
 * A container's public log from its start. Public: asked for without the API key.
 * @throws cloud_unreachable, cloud_unavailable, cloud_reply_malformed.
 */
export async function readLog(
  address: string,
  { apiUrl, timeoutMs, maxBytes }: { apiUrl: string; timeoutMs: number; maxBytes: number },
): Promise<Buffer> {
  const url = logUrl(address, apiUrl);
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
    if (!response.ok) throw new EvaluatorError('cloud_unavailable', `log: status ${response.status}`);
    return await bytesUpTo(response.body, maxBytes);
  } catch (cause) {
    if (cause instanceof EvaluatorError) throw cause;
    const why = printable(cause instanceof Error ? cause.message : String(cause));
    throw new EvaluatorError('cloud_unreachable', `log: ${why}`, { cause });
  }
}
