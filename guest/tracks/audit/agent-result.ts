import { z } from 'zod';
import { EvaluatorError } from '../../errors.ts';
import { type ForeignLimits, parseForeignJson } from '../../wire/foreign-json.ts';
import { type BehaviouralVerdict, behaviouralVerdictSchema } from '../../wire/score-record.ts';

/** 1 MiB (spec/02). */
export const MAX_RESULT_BYTES = 1024 * 1024;
const LIMITS: ForeignLimits = { maxBytes: MAX_RESULT_BYTES, maxDepth: 32 };
const MAX_FINDINGS = 10_000;
/** Of one finding. */
const MAX_CWES = 100;

/** A list whose length is looked at before what is in it: of every entry that is wrong a schema keeps an issue. */
const atMost = (most: number) => z.array(z.unknown()).max(most);

/** Matched case-insensitively, not trimmed. */
const decision = z
  .string()
  .regex(/^(?:allow|warn|block)$/i)
  .transform((word) => behaviouralVerdictSchema.parse(word.toUpperCase()));

const verdict = z.strictObject({
  decision,
  risk_score: z.number().min(0).max(100).optional(),
  confidence: z.number().min(0).max(1).optional(),
});

const cwe = z.union([z.number(), z.string()]);
const text = z.string().nullish();

/** One finding of a repository audit; null is as good as left out, more keys (severity, a fix) are of no account. */
export const findingSchema = z.looseObject({
  kind: z.enum(['vulnerability', 'supply_chain', 'secret']),
  file: z.string(),
  /** 1-based. */
  line: z.int().nullish(),
  /** `CWE-79`, `79` or 79. */
  cwe: cwe.nullish(),
  all_cwes: atMost(MAX_CWES).pipe(z.array(cwe)).nullish(),
  /** Of a supply-chain finding. */
  package: text,
  title: text,
  description: text,
});
export type Finding = z.infer<typeof findingSchema>;

const behaviouralSchema = z.strictObject({
  verdict,
  evidence: z.looseObject({}),
  findings: atMost(MAX_FINDINGS).pipe(z.array(z.looseObject({}))),
});

const repositorySchema = z.strictObject({
  verdict,
  evidence: z.looseObject({ audit: z.looseObject({ files_analysed: z.int().positive() }) }),
  findings: atMost(MAX_FINDINGS),
});

function parse<T>(schema: z.ZodType<T>, bytes: Buffer): T | null {
  let value: unknown;
  try {
    value = parseForeignJson(bytes, LIMITS);
  } catch (error) {
    if (error instanceof EvaluatorError) return null;
    throw error;
  }
  return schema.safeParse(value).data ?? null;
}

/**
 * The decision of a behavioural result.json (spec/02, Output of an agent).
 * @returns null for anything that is not exactly such a document: `malformed_output`.
 */
export function parseBehaviouralResult(bytes: Buffer): BehaviouralVerdict | null {
  return parse(behaviouralSchema, bytes)?.verdict.decision ?? null;
}

/** The findings of a repository audit's result.json; null: `malformed_output`. */
export function parseRepositoryResult(bytes: Buffer): Finding[] | null {
  const found = parse(repositorySchema, bytes)?.findings;
  if (found === undefined) return null;
  const findings: Finding[] = [];
  // One after the other: ten thousand wrong ones would hold up our timers.
  for (const one of found) {
    const finding = findingSchema.safeParse(one);
    if (!finding.success) return null;
    findings.push(finding.data);
  }
  return findings;
}
