import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
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

/**
 * What the local challenge admits the run by: the review that was given, believed by what lies beside it; of a
 * ranked run without one, nothing that was looked at.
 * @throws usage.
 */
export function admissionOf({
  review,
  weight,
}: Pick<RunOptions, 'review' | 'weight'>): Record<string, unknown> {
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
