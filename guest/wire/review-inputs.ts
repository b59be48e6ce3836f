import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical } from './canonical.ts';
import { sha256Hex } from './digest.ts';
import { id, int, parseSchema, sha256, taskId } from './scalars.ts';

const MAX_RULES_BYTES = 1024 * 1024;
/** The bundle's own bytes: its contents in base64, and their names. */
export const MAX_RULES_BUNDLE_BYTES = 2 * 1024 * 1024;
export const MAX_CORPUS_BYTES = 32 * 1024 * 1024;

export const base64 = z
  .string()
  // One loop over single characters: a group repeated over megabytes overflows the matcher's stack.
  .regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64')
  .refine((text) => text.length % 4 === 0, 'must be base64');

const rulePath = z
  .string()
  .regex(
    /^(?:[A-Za-z0-9_][A-Za-z0-9._-]*\/){0,8}[A-Za-z0-9_][A-Za-z0-9._-]*\.md$/,
    'must be a path to a .md file',
  )
  .max(255);

/** The challenge's rules, as one document whose SHA-256 is the snapshot (spec/09). */
export const rulesBundleSchema = z.strictObject({
  schema_version: z.literal(1),
  revision_id: id,
  /** Ascending by path. */
  files: z
    .array(z.strictObject({ path: rulePath, length: int, sha256, content_b64: base64 }))
    .min(1)
    .max(128),
});
export type RulesBundle = z.infer<typeof rulesBundleSchema>;

export interface RuleFile {
  path: string;
  text: string;
}

function ascending<T>(items: readonly T[], key: (item: T) => string | number): boolean {
  return items.every((item, i) => {
    const before = items[i - 1];
    return before === undefined || key(before) < key(item);
  });
}

function refuse(what: string): never {
  throw new EvaluatorError('rules_invalid', `rules: ${what}`);
}

/**
 * Reads a bundle whose bytes have the expected SHA-256.
 * @returns its files, decoded. @throws rules_digest_mismatch, json_*, schema_invalid, rules_invalid.
 */
export function parseRulesBundle(
  bytes: Uint8Array,
  expected: { snapshot_sha256: string; revision_id: string },
): RuleFile[] {
  if (sha256Hex(bytes) !== expected.snapshot_sha256)
    throw new EvaluatorError('rules_digest_mismatch', 'rules: not the snapshot that the assignment names');
  const bundle = parseSchema(rulesBundleSchema, decodeCanonical(bytes, MAX_RULES_BUNDLE_BYTES), 'rules');
  if (bundle.revision_id !== expected.revision_id) refuse('revision_id is not the one of the assignment');
  if (!ascending(bundle.files, ({ path }) => path)) refuse('files: must be strictly ascending by path');
  let total = 0;
  return bundle.files.map(({ path, length, sha256: expectedSha, content_b64 }) => {
    const content = Buffer.from(content_b64, 'base64');
    total += content.length;
    if (total > MAX_RULES_BYTES) refuse(`more than ${MAX_RULES_BYTES} bytes`);
    if (content.toString('base64') !== content_b64) refuse(`${path}: content_b64 is not canonical base64`);
    if (content.length !== length || sha256Hex(content) !== expectedSha)
      refuse(`${path}: its content has another length or SHA-256`);
    try {
      return { path, text: new TextDecoder('utf-8', { fatal: true }).decode(content) };
    } catch {
      return refuse(`${path}: not UTF-8`);
    }
  });
}

/** A fingerprint: 48 bits of a hash. */
const fingerprint = int.max(2 ** 48 - 1);

/** What a submission is compared with (spec/09). Every list strictly ascending. */
const corpusSchema = z.strictObject({
  schema_version: z.literal(1),
  algorithm: z.literal('winnow/v1'),
  submissions: z
    .array(z.strictObject({ agent_hash: sha256, fingerprints: z.array(fingerprint).min(1).max(100_000) }))
    .max(100_000),
  tasks: z.array(z.strictObject({ task_id: taskId, instruction_sha256: sha256 })).max(10_000),
  /** SHA-256 of normalised fragments of public solutions. */
  solution_fragments: z.array(sha256).max(200_000),
});
export type Corpus = z.infer<typeof corpusSchema>;

/**
 * Reads the corpus whose bytes have the expected SHA-256.
 * @throws corpus_digest_mismatch, json_*, schema_invalid, corpus_invalid.
 */
export function parseCorpus(bytes: Uint8Array, expectedSha256: string): Corpus {
  if (sha256Hex(bytes) !== expectedSha256)
    throw new EvaluatorError('corpus_digest_mismatch', 'corpus: not the one that the assignment names');
  const corpus = parseSchema(corpusSchema, decodeCanonical(bytes, MAX_CORPUS_BYTES), 'corpus');
  const sorted =
    ascending(corpus.submissions, ({ agent_hash }) => agent_hash) &&
    ascending(corpus.tasks, ({ task_id }) => task_id) &&
    ascending(corpus.solution_fragments, (fragment) => fragment) &&
    corpus.submissions.every(({ fingerprints }) => ascending(fingerprints, (one) => one));
  if (!sorted) throw new EvaluatorError('corpus_invalid', 'corpus: its lists must be strictly ascending');
  return corpus;
}
