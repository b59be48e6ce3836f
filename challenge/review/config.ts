import { z } from 'zod';
import { assignmentSchema } from '../../guest/wire/assignment.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { allowlistSchema } from '../../guest/wire/measurement.ts';
import { int, parseSchema, pem } from '../../guest/wire/scalars.ts';
import { parseCollateral } from '../verify/collateral.ts';

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;
const path = z.string().min(1).max(4096);

/** What a local challenge that reviews one agent is started with. Every field is required. */
export const reviewConfigSchema = z.strictObject({
  /** Keys and ledger; made if absent. */
  state_dir: path,
  host: z.string().min(1).max(253),
  /** 0: any free one. */
  port: int.max(65_535),
  /** Where assignment, report, review and all that a check of them needs is left. */
  out_dir: path,
  tdx_root_pem: pem,
  collateral: z.unknown(),
  /** Of the review image alone. */
  allowlist: allowlistSchema,
  accepted_tcb: z.array(z.string().min(1).max(64)).min(1).max(16),
  agent_zip_path: path,
  /** The bundle's and the corpus' exact bytes. */
  rules_path: path,
  corpus_path: path,
  policy: assignmentSchema.shape.policy,
  review_app: assignmentSchema.shape.review_app,
});
export type ReviewConfig = z.infer<typeof reviewConfigSchema>;

/** Reads the configuration. @throws json_*, schema_invalid and collateral_malformed naming the field. */
export function parseReviewConfig(bytes: Uint8Array): ReviewConfig {
  const value = parseForeignJson(bytes, { maxBytes: MAX_CONFIG_BYTES, maxDepth: 16 });
  const config = parseSchema(reviewConfigSchema, value, 'config');
  parseCollateral(config.collateral);
  return config;
}
