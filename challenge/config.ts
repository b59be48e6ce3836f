import { z } from 'zod';
import { parseForeignJson } from '../guest/wire/foreign-json.ts';
import { allowlistSchema } from '../guest/wire/measurement.ts';
import { planSchema, planTaskSchema, policySchema } from '../guest/wire/plan.ts';
import { envName, int, parseSchema, pem, positiveInt, sha256 } from '../guest/wire/scalars.ts';
import { parseCollateral } from './verify/collateral.ts';

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;
const path = z.string().min(1).max(4096);

/** What a local challenge is started with. Every field is required: nothing is accepted by default. */
export const configSchema = z.strictObject({
  /** Keys and ledger; made if absent. */
  state_dir: path,
  host: z.string().min(1).max(253),
  /** 0: any free one. */
  port: int.max(65_535),
  /** Where the plan and all that `verify` needs is left. */
  out_dir: path,
  tdx_root_pem: pem,
  collateral: z.unknown(),
  allowlist: allowlistSchema,
  mechanism_path: path,
  agent_zip_path: path,
  agent_env: z.array(envName).max(64),
  cache: z.strictObject({
    cache_digest: sha256,
    toolchain_digest: sha256.nullable(),
    tasks: z.array(planTaskSchema).min(1).max(4096),
  }),
  select: z.strictObject({ n: positiveInt.max(1024) }),
  r: positiveInt.max(64),
  policy: policySchema,
  n_concurrent: positiveInt.max(64),
  ranked: z.boolean(),
  eval_app: planSchema.shape.eval_app,
  plan_ttl_ms: positiveInt,
  accepted_tcb: z.array(z.string().min(1).max(64)).min(1).max(16),
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
  return config;
}
