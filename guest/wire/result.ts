import { z } from 'zod';
import { decodeCanonical, encodeCanonical } from './canonical.ts';
import { measurementSchema, vmShapeSchema } from './measurement.ts';
import { hex, id, int, parseSchema, register, sha256 } from './scalars.ts';
import { scoreRecordSchema } from './score-record.ts';

/** 16 MiB (spec/07). */
export const MAX_RESULT_BYTES = 16 * 1024 * 1024;

/** imr 0..2 travel as {imr, digest}: nothing signs their names (spec/01). */
export const eventSchema = z.union([
  z.strictObject({ imr: int.max(2), digest: register }),
  z.strictObject({
    imr: z.literal(3),
    event_type: int,
    digest: register,
    event: z.string().max(128),
    event_payload: hex,
  }),
]);
export type WireEvent = z.infer<typeof eventSchema>;

export const attestationSchema = z.strictObject({
  tdx_quote: hex.max(2 * 64 * 1024),
  event_log: z.array(eventSchema).max(4096),
  report_data: z.string().regex(/^[0-9a-f]{128}$/),
  measurement: measurementSchema,
  vm_config: vmShapeSchema,
});
export type Attestation = z.infer<typeof attestationSchema>;

export const resultSchema = z.strictObject({
  schema_version: z.literal(2),
  eval_run_id: id,
  submission_id: id,
  agent_hash: sha256,
  score_record: scoreRecordSchema,
  scores_digest: sha256,
  execution_proof: z.strictObject({
    version: z.literal(2),
    tier: z.literal('tdx'),
    image_digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
    plan_digest: sha256,
    attestation: attestationSchema,
  }),
});
export type Result = z.infer<typeof resultSchema>;

/** Reads RESULT bytes: canonical, closed. @throws json_*, schema_invalid. */
export function parseResult(bytes: Uint8Array): Result {
  return parseSchema(resultSchema, decodeCanonical(bytes, MAX_RESULT_BYTES), 'result');
}

/** The exact bytes that are printed, posted and hashed; never re-encoded after this. */
export function encodeResult(result: Result): Buffer {
  return encodeCanonical(result);
}
