import { z } from 'zod';
import { httpsUrl, id, pem, positiveInt } from './scalars.ts';

/** An address without credentials, query or fragment: all of it is public, and nothing of it decides more. */
export const plainHttpsUrl = httpsUrl.refine(
  (url) => URL.canParse(url) && !/[?#@]/.test(url),
  'must be an https:// URL without credentials, query or fragment',
);

/** What `network: inference` reaches (docs/inference.md): one endpoint, exact models, and the most of each. */
export const inferenceSchema = z.strictObject({
  /** An OpenAI-compatible chat-completions endpoint. */
  upstream: plainHttpsUrl,
  /** The only issuer that is believed there; null: the public ones. */
  ca_pem: pem.nullable(),
  /** Exact ids, among which an agent chooses. */
  models: z
    .array(id)
    .min(1)
    .max(64)
    .refine((models) => new Set(models).size === models.length, 'must name each model once'),
  /** Per rep. */
  caps: z.strictObject({
    requests: positiveInt.max(100_000),
    /** Bodies sent to the endpoint. */
    sent_bytes: positiveInt,
    /** Bodies received from it. */
    received_bytes: positiveInt,
    /** Prompts and replies together, as the endpoint counts them. */
    tokens: positiveInt,
    /** Of one reply. */
    reply_tokens: positiveInt.max(1_000_000),
  }),
});
export type Inference = z.infer<typeof inferenceSchema>;
