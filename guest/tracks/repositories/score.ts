import type { Finding } from '../audit/agent-result.ts';
import type { GroundTruth } from './ground-truth.ts';
import { MATCHES, toItem } from './matches.ts';
import { maximumMatching } from './matching.ts';

type Dimension = keyof typeof MATCHES;

const WEIGHTS: readonly (readonly [Dimension, Finding['kind'], number])[] = [
  ['vulnerabilities', 'vulnerability', 0.5],
  ['supply_chain', 'supply_chain', 0.3],
  ['secrets', 'secret', 0.2],
];

/** Reports of an empty dimension that leave nothing of its score. */
const EMPTY_TOLERANCE = 5;

/**
 * F2 = 5PR / (4P + R), from counts: precision over what was reported, recall over what was planted.
 * With nothing planted 1 - reported / 5, at least 0.
 */
export function f2(matched: number, reported: number, planted: number): number {
  if (planted === 0) return Math.max(0, 1 - reported / EMPTY_TOLERANCE);
  if (matched === 0) return 0;
  const precision = matched / reported;
  const recall = matched / planted;
  return (5 * precision * recall) / (4 * precision + recall);
}

function dimensionScore(dimension: Dimension, truth: GroundTruth, reported: readonly Finding[]): number {
  const left = (truth[dimension] ?? []).map(toItem);
  const right = reported.map(toItem);
  const matched = maximumMatching(left.length, right.length, (l, r) => {
    const [a, b] = [left[l], right[r]];
    return a !== undefined && b !== undefined && MATCHES[dimension](a, b);
  });
  return f2(matched, right.length, left.length);
}

/**
 * One rep's score in [0,1]: F2 of each dimension that the ground truth has, weighted 0.5, 0.3, 0.2 and
 * renormalised (spec/02, Scoring). Findings of a dimension that it has not are of no account.
 */
export function scoreFindings(findings: readonly Finding[], truth: GroundTruth): number {
  let sum = 0;
  let weights = 0;
  for (const [dimension, kind, weight] of WEIGHTS) {
    if (truth[dimension] === undefined) continue;
    const reported = findings.filter((finding) => finding.kind === kind);
    sum += weight * dimensionScore(dimension, truth, reported);
    weights += weight;
  }
  // Rounding could leave a perfect score above 1.
  return Math.min(1, sum / weights);
}
