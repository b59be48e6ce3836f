import type { Assignment } from '../wire/assignment.ts';
import {
  type Corpus,
  MAX_CORPUS_BYTES,
  MAX_RULES_BUNDLE_BYTES,
  parseCorpus,
  parseRulesBundle,
  type RuleFile,
} from '../wire/review-inputs.ts';
import type { ReviewHost } from './config.ts';
import { fetchBytes } from './fetch.ts';

/** What a submission is judged by. */
export interface ReviewedAgainst {
  rules: readonly RuleFile[];
  corpus: Corpus;
}

/**
 * Step 3: the rules and the similarity corpus that the assignment names by digest.
 * @throws rules_unavailable, rules_digest_mismatch, rules_invalid, corpus_unavailable, corpus_digest_mismatch,
 *   corpus_invalid, json_*, schema_invalid.
 */
export async function fetchRules(
  { rules, similarity }: Assignment,
  host: ReviewHost,
): Promise<ReviewedAgainst> {
  const bundle = await fetchBytes(
    {
      name: 'rules',
      path: rules.fetch_path,
      maxBytes: MAX_RULES_BUNDLE_BYTES,
      code: 'rules_unavailable',
    },
    host,
  );
  const corpus = await fetchBytes(
    {
      name: 'corpus',
      path: similarity.fetch_path,
      maxBytes: MAX_CORPUS_BYTES,
      code: 'corpus_unavailable',
    },
    host,
  );
  return { rules: parseRulesBundle(bundle, rules), corpus: parseCorpus(corpus, similarity.corpus_sha256) };
}
