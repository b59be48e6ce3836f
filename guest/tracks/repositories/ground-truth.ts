import { z } from 'zod';
import { EvaluatorError } from '../../errors.ts';
import { parseForeignJson } from '../../wire/foreign-json.ts';
import { parseSchema } from '../../wire/scalars.ts';
import { findingSchema } from '../audit/agent-result.ts';

/** Where a repositories task says what is planted; sealed like tests. */
export const GROUND_TRUTH_FILE = 'tests/ground_truth.json';

const LIMITS = { maxBytes: 1024 * 1024, maxDepth: 8 };
const MAX_PLANTED = 256;

const { file, line, cwe, all_cwes } = findingSchema.shape;
const text = z.string().max(4096).default('');

const vulnerability = z.strictObject({ file, line, cwe, all_cwes, title: text, description: text });
const supplyChain = z.strictObject({ file, package: z.string().min(1), title: text, description: text });
const secret = z.strictObject({ file, line, title: text, description: text });

/** What is planted in a repository. A dimension that is left out is not scored; an empty one is (spec/02). */
export const groundTruthSchema = z
  .strictObject({
    schema_version: z.literal(1),
    vulnerabilities: z.array(vulnerability).max(MAX_PLANTED).optional(),
    supply_chain: z.array(supplyChain).max(MAX_PLANTED).optional(),
    secrets: z.array(secret).max(MAX_PLANTED).optional(),
  })
  .refine(
    (truth) => Boolean(truth.vulnerabilities ?? truth.supply_chain ?? truth.secrets),
    'must have at least one of vulnerabilities, supply_chain, secrets',
  );
export type GroundTruth = z.infer<typeof groundTruthSchema>;

/**
 * Reads tests/ground_truth.json of a repositories task.
 * @param where how messages call the task; they quote no more than a key.
 * @throws ground_truth_invalid.
 */
export function parseGroundTruth(bytes: Buffer, where: string): GroundTruth {
  try {
    return parseSchema(groundTruthSchema, parseForeignJson(bytes, LIMITS), GROUND_TRUTH_FILE);
  } catch (error) {
    if (!(error instanceof EvaluatorError)) throw error;
    // The cause is dropped: it might quote what is hidden.
    throw new EvaluatorError('ground_truth_invalid', `${where}: ${GROUND_TRUTH_FILE}: ${error.code}`);
  }
}
