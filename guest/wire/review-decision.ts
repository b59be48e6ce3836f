import { z } from 'zod';
import { decodeCanonical } from './canonical.ts';
import type { ModelReading, Verdict } from './model-reply.ts';
import { int, parseSchema, positiveInt, sha256 } from './scalars.ts';

/** Every static finding and what it does to the verdict (spec/09). */
export const FINDING_CLASSES = {
  reads_hidden_tests: 'reject',
  reads_verifier_output: 'reject',
  reads_probe_file: 'reject',
  branches_on_task_identity: 'reject',
  hardcoded_answer: 'reject',
  executes_encoded_code: 'reject',
  engine_socket_access: 'reject',
  guest_agent_access: 'reject',
  // Suspicion without direct proof
  mentions_protected_path: 'escalate',
  mentions_task_identity: 'escalate',
  executes_dynamic_code: 'escalate',
  downloads_and_executes: 'escalate',
  network_destination_not_allowed: 'escalate',
  embedded_credential: 'escalate',
  prompt_injection: 'escalate',
  // What could not be read, or not be shown in full
  unanalysable: 'escalate',
  member_not_text: 'escalate',
  text_truncated: 'escalate',
} as const satisfies Record<string, 'reject' | 'escalate'>;
export type FindingCode = keyof typeof FINDING_CLASSES;

export const MAX_FINDINGS = 1000;

const findingSchema = z.strictObject({
  code: z.enum(Object.keys(FINDING_CLASSES) as [FindingCode, ...FindingCode[]]),
  /** The member's name; bytes that are not printable ASCII as \xNN. */
  path: z.string().max(4200),
  /** From 1; 0: the member as a whole. */
  line: int,
  /** SHA-256 of that line in UTF-8, without its line break; for line 0 of the member's bytes. */
  excerpt_sha256: sha256,
});
export type Finding = z.infer<typeof findingSchema>;

/** The findings of a review, sorted by path, line and code, each once. */
const findingsSchema = z.strictObject({
  schema_version: z.literal(1),
  findings: z.array(findingSchema).max(MAX_FINDINGS),
});
export type Findings = z.infer<typeof findingsSchema>;
const MAX_FINDINGS_BYTES = 6 * 1024 * 1024;

/** Reads a list of findings. @throws json_*, schema_invalid. */
export function parseFindings(bytes: Uint8Array): Findings {
  return parseSchema(findingsSchema, decodeCanonical(bytes, MAX_FINDINGS_BYTES), 'findings');
}

/** How much of a submission is in an earlier one: `shared` of its `total` fingerprints. */
export const containmentSchema = z.strictObject({ shared: int, total: positiveInt });
export type Containment = z.infer<typeof containmentSchema>;
export const similarityLevelSchema = z.enum(['none', 'medium', 'high']);
type SimilarityLevel = z.infer<typeof similarityLevelSchema>;

/** Containment of 0.9 and more is high, 0.6 and more is medium (spec/09). */
export function similarityLevel(containment: Containment | null): SimilarityLevel {
  if (containment === null) return 'none';
  const { shared, total } = containment;
  if (shared * 10 >= total * 9) return 'high';
  return shared * 10 >= total * 6 ? 'medium' : 'none';
}

export interface Decision {
  verdict: Verdict;
  /** Ascending, each once; never empty. */
  reason_codes: string[];
}

export const POLICY_PASSED = 'policy_passed';

interface Ground {
  verdict: 'reject' | 'escalate';
  code: string;
}

function modelGrounds({ verdict: said }: ModelReading): Ground[] {
  if (said === null) return [{ verdict: 'escalate', code: 'model_output_malformed' }];
  const { verdict } = said;
  if (verdict === 'allow') return [];
  // The code of an allow never stands beside a stricter verdict.
  const codes = said.reason_codes.filter((code) => code !== POLICY_PASSED);
  return (codes.length > 0 ? codes : [`model_${verdict}`]).map((code) => ({ verdict, code }));
}

function similarityGrounds(containment: Containment | null): Ground[] {
  const level = similarityLevel(containment);
  return level === 'none' ? [] : [{ verdict: 'escalate', code: `similarity_${level}_risk` }];
}

/**
 * The verdict of a review. The model and the similarity add grounds; nothing takes one away, so neither can
 * make a verdict milder (spec/09).
 */
export function decide(evidence: {
  findings: Findings;
  similarity: Containment | null;
  model: ModelReading;
}): Decision {
  const grounds: Ground[] = [
    ...evidence.findings.findings.map(({ code }) => ({ verdict: FINDING_CLASSES[code], code })),
    ...similarityGrounds(evidence.similarity),
    ...modelGrounds(evidence.model),
  ];
  if (grounds.length === 0) return { verdict: 'allow', reason_codes: [POLICY_PASSED] };
  const reason_codes = [...new Set(grounds.map(({ code }) => code))].sort();
  const rejected = grounds.some(({ verdict }) => verdict === 'reject');
  return { verdict: rejected ? 'reject' : 'escalate', reason_codes };
}
