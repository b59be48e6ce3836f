import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { encodeCanonicalUnicode } from './canonical.ts';
import { digest } from './digest.ts';
import { parseForeignJson } from './foreign-json.ts';
import { id, parseSchema } from './scalars.ts';

/** 4 MiB out (spec/09). */
export const MAX_MODEL_REQUEST_BYTES = 4 * 1024 * 1024;
export const MODEL_ENDPOINT = 'https://openrouter.ai/api/v1/chat/completions';

/** One provider, no fallback, nothing kept: the only routing there is (spec/09). */
export const routingSchema = z.strictObject({
  order: z.array(id).length(1),
  only: z.array(id).length(1),
  ignore: z.array(id).length(0),
  quantizations: z.array(id).length(0),
  sort: z.null(),
  allow_fallbacks: z.literal(false),
  require_parameters: z.literal(true),
  data_collection: z.literal('deny'),
});
type Routing = z.infer<typeof routingSchema>;

/** The routing to one provider. */
export function routingTo(provider: string): Routing {
  return {
    order: [provider],
    only: [provider],
    ignore: [],
    quantizations: [],
    sort: null,
    allow_fallbacks: false,
    require_parameters: true,
    data_collection: 'deny',
  };
}

export const VERDICT_TOOL_NAME = 'submit_verdict';
export const MAX_REASON_CODES = 32;
export const MAX_EVIDENCE_PATHS = 64;

/** The one function that the model may call. */
export const VERDICT_TOOL = {
  type: 'function',
  function: {
    name: VERDICT_TOOL_NAME,
    description: 'Submit the verdict of the review. Call it exactly once.',
    parameters: {
      type: 'object',
      additionalProperties: false,
      required: ['verdict', 'reason_codes', 'evidence_paths'],
      properties: {
        verdict: { type: 'string', enum: ['allow', 'reject', 'escalate'] },
        reason_codes: {
          type: 'array',
          maxItems: MAX_REASON_CODES,
          items: { type: 'string', pattern: '^[a-z][a-z0-9_]{0,63}$' },
          description: 'Codes of the rules that were broken; empty when the verdict is allow.',
        },
        evidence_paths: {
          type: 'array',
          maxItems: MAX_EVIDENCE_PATHS,
          items: { type: 'string', maxLength: 256 },
          description: 'Where, as path:line.',
        },
      },
    },
  },
} as const;
/** What an assignment's policy.tool_schema_sha256 must be. */
export const TOOL_SCHEMA_SHA256 = digest(VERDICT_TOOL);

/** The body that is sent: nothing else can be in it, whatever an agent says. */
const modelRequestSchema = z.strictObject({
  messages: z.tuple([
    z.strictObject({ role: z.literal('system'), content: z.string() }),
    z.strictObject({ role: z.literal('user'), content: z.string() }),
  ]),
  model: id,
  provider: routingSchema,
  stream: z.literal(false),
  tool_choice: z.literal('auto'),
  tools: z.array(z.unknown()).length(1),
});
type ModelRequest = z.infer<typeof modelRequestSchema>;

/** The exact bytes that are hashed, announced and sent. @throws value_not_encodable. */
export function encodeModelRequest(request: ModelRequest): Buffer {
  return encodeCanonicalUnicode(request);
}

/**
 * Reads a planned request: closed, byte-equal to its own encoding, with our one tool.
 * @throws json_*, schema_invalid.
 */
export function parseModelRequest(bytes: Uint8Array): ModelRequest {
  const value = parseForeignJson(bytes, { maxBytes: MAX_MODEL_REQUEST_BYTES, maxDepth: 32 });
  const request = parseSchema(modelRequestSchema, value, 'model request');
  if (!encodeModelRequest(request).equals(bytes)) {
    throw new EvaluatorError('json_not_canonical', 'model request: differs from its canonical re-encoding');
  }
  if (digest(request.tools[0]) !== TOOL_SCHEMA_SHA256) {
    throw new EvaluatorError('schema_invalid', 'model request: tools.0: not the submit_verdict tool');
  }
  return request;
}
