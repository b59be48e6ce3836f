import { z } from 'zod';
import { parseForeignJson } from '../wire/foreign-json.ts';
import { int } from '../wire/scalars.ts';
import type { Counts } from './proxy/meter.ts';

export type { Counts };

const countsSchema = z.strictObject({
  requests: int,
  refused: int,
  sent_bytes: int,
  received_bytes: int,
  prompt_tokens: int,
  completion_tokens: int,
});

/** Reads what a proxy has left of its counts; null where it is nothing of the kind. */
export function parseCounts(bytes: Uint8Array): Counts | null {
  try {
    return countsSchema.parse(parseForeignJson(bytes, { maxBytes: bytes.byteLength, maxDepth: 2 }));
  } catch {
    return null;
  }
}
