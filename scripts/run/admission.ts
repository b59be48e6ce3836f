import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { reviewTrustSchema } from '../../challenge/config.ts';
import { trustedFileReview } from '../../challenge/review/trusted-file.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import type { RunOptions } from './options.ts';

function readBeside(review: string, name: string): string {
  const path = join(dirname(review), name);
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const why = `--review ${review}: ${name} must lie beside it, as \`evaluator review\` left it`;
    throw new EvaluatorError('usage', why, { cause });
  }
}

function readJsonBeside(review: string, name: string): unknown {
  try {
    return JSON.parse(readBeside(review, name));
  } catch (cause) {
    if (cause instanceof EvaluatorError) throw cause;
    throw new EvaluatorError('usage', `--review ${review}: ${name} beside it is not JSON`, { cause });
  }
}

/** Of the local challenge's configuration. */
type Admission = { kind: 'none' | 'unreviewed' } | { kind: 'file'; path: string; trust: object };

/**
 * What the local challenge admits the run by: the review that was given, believed by what lies beside it; of a
 * ranked run without one, nothing that was looked at.
 * @throws usage.
 */
export function admissionOf({ review, weight }: Pick<RunOptions, 'review' | 'weight'>): Admission {
  if (review === null) return { kind: weight === 'ranked' ? 'unreviewed' : 'none' };
  const trust = {
    root: readJsonBeside(review, 'review-root.json'),
    allowlist: readJsonBeside(review, 'allowlist.json'),
    tdx_root_pem: readBeside(review, 'root.pem'),
    collateral: readJsonBeside(review, 'collateral.json'),
    accepted_tcb: ['UpToDate'],
  };
  return { kind: 'file', path: review, trust };
}

/**
 * The review that was given admits this agent, as the challenge will find again.
 * @throws usage, schema_invalid, and whatever a review is refused with.
 */
export async function verifyAdmitted(
  options: Pick<RunOptions, 'review' | 'weight'>,
  agentHash: string,
  nowMs: number,
): Promise<void> {
  const admission = admissionOf(options);
  if (admission.kind !== 'file') return;
  const { path, trust } = admission;
  const believed = parseSchema(reviewTrustSchema, trust, `--review ${path}: what lies beside it`);
  await trustedFileReview(path, believed).admit(agentHash, nowMs);
}
