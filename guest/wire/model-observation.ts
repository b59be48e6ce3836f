import { sha256Hex } from './digest.ts';
import { type ModelReading, NOT_ASKED, readModelReply } from './model-reply.ts';
import type { ReviewCore } from './review.ts';
import { printable } from './scalars.ts';

/** The bytes of one model call; `response` is null when no model was asked. */
interface ModelExchange {
  request: Uint8Array;
  response: Uint8Array | null;
}

/** A name that a foreign service gave itself, as it may stand in a review: printable ASCII, cut short. */
function foreignName(text: string | null): string | null {
  return text === null ? null : printable(text).slice(0, 128);
}

/**
 * What a review says of its model call. All of it follows from the bytes, so that whoever holds them says the
 * same.
 */
export function observeModel(
  { request, response }: ModelExchange,
  pinnedModel: string,
): { reading: ModelReading; observation: ReviewCore['model'] } {
  const reading = response === null ? NOT_ASKED : readModelReply(response, pinnedModel);
  return {
    reading,
    observation: {
      outcome: reading.outcome,
      request_sha256: sha256Hex(request),
      request_bytes: request.length,
      status: response === null ? null : 200,
      response_sha256: response === null ? null : sha256Hex(response),
      response_bytes: response === null ? null : response.length,
      returned_model: foreignName(reading.returnedModel),
      provider: foreignName(reading.provider),
    },
  };
}
