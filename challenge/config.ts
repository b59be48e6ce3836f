import { z } from 'zod';
import { EvaluatorError } from '../guest/errors.ts';
import { parseForeignJson } from '../guest/wire/foreign-json.ts';
import { allowlistSchema } from '../guest/wire/measurement.ts';
import { planSchema, planTaskSchema, policySchema } from '../guest/wire/plan.ts';
import {
  ed25519PublicKey,
  envName,
  id,
  imageRef,
  int,
  parseSchema,
  pem,
  positiveInt,
  sha256,
} from '../guest/wire/scalars.ts';
import { parseCollateral } from './verify/collateral.ts';

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;
const path = z.string().min(1).max(4096);

const tcbStatuses = z.array(z.string().min(1).max(64)).min(1).max(16);

/** Whom a review is believed by: the root that its assignment is signed under, and what its quote must show. */
export const reviewTrustSchema = z.strictObject({
  root: z.strictObject({ public_key: ed25519PublicKey, challenge_id: id }),
  allowlist: allowlistSchema,
  tdx_root_pem: pem,
  collateral: z.unknown(),
  accepted_tcb: tcbStatuses,
});

/** What a local challenge is started with. Every field is required: nothing is accepted by default. */
export const configSchema = z.strictObject({
  /** Keys and ledger; made if absent. */
  state_dir: path,
  host: z.string().min(1).max(253),
  /** 0: any free one. */
  port: int.max(65_535),
  /** Key release has a port of its own; 0: any free one. Unused without a sealed cache. */
  key_release_port: int.max(65_535),
  /** Where the plan and all that `verify` needs is left. */
  out_dir: path,
  tdx_root_pem: pem,
  /** The KMS root, under which guests' certificates are believed; null only without a sealed cache. */
  client_ca_pem: pem.nullable(),
  /** A file of `evaluator keygen`; null only without a sealed cache. */
  golden_key_path: path.nullable(),
  /** What admits a ranked run: nothing; at a desk nothing asked; or an accepted review and whom it is believed by. */
  reviews: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('none') }),
    z.strictObject({ kind: z.literal('unreviewed') }),
    z.strictObject({ kind: z.literal('file'), path, trust: reviewTrustSchema }),
  ]),
  collateral: z.unknown(),
  allowlist: allowlistSchema,
  mechanism_path: path,
  agent_zip_path: path,
  agent_env: z.array(envName).max(64),
  /** What a brokered agent's sandboxes are made from; null for a container agent. */
  agent_runtime_image: imageRef.nullable(),
  cache: z.strictObject({
    cache_digest: sha256,
    /** Of the sealed cache; null when its tests lie in plain. */
    cache_id: sha256.nullable(),
    toolchain_digest: sha256.nullable(),
    tasks: z.array(planTaskSchema).min(1).max(4096),
  }),
  select: z.strictObject({ n: positiveInt.max(1024) }),
  track: id,
  /** The baked cache, whose labels score a behavioural track; null on any other. */
  labels_cache_path: path.nullable(),
  r: positiveInt.max(64),
  /** Null on every track but terminal-bench. */
  policy: policySchema.nullable(),
  n_concurrent: positiveInt.max(64),
  ranked: z.boolean(),
  eval_app: planSchema.shape.eval_app,
  plan_ttl_ms: positiveInt,
  accepted_tcb: tcbStatuses,
});
export type ChallengeConfig = z.infer<typeof configSchema>;

/**
 * Reads the configuration of a local challenge.
 * @throws json_*, schema_invalid and collateral_malformed naming the field.
 */
export function parseConfig(bytes: Uint8Array): ChallengeConfig {
  const value = parseForeignJson(bytes, { maxBytes: MAX_CONFIG_BYTES, maxDepth: 16 });
  const config = parseSchema(configSchema, value, 'config');
  parseCollateral(config.collateral);
  if (config.ranked && (config.cache.cache_id === null || config.reviews.kind === 'none')) {
    const message = 'config: ranked: a ranked plan needs a sealed cache (cache.cache_id) and reviews';
    throw new EvaluatorError('schema_invalid', message);
  }
  const sealed = [config.golden_key_path, config.client_ca_pem, config.cache.cache_id];
  if (new Set(sealed.map((value) => value === null)).size > 1) {
    const message = 'config: golden_key_path, client_ca_pem and cache.cache_id: all or none of them is null';
    throw new EvaluatorError('schema_invalid', message);
  }
  return config;
}
