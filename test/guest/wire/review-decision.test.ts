import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ModelReading, NOT_ASKED, type Verdict } from '../../../guest/wire/model-reply.ts';
import {
  decide,
  FINDING_CLASSES,
  type Finding,
  type FindingCode,
  type Findings,
} from '../../../guest/wire/review-decision.ts';

const RANK: Record<Verdict, number> = { allow: 0, escalate: 1, reject: 2 };
const FINDING_CODES = Object.keys(FINDING_CLASSES) as FindingCode[];

const finding = (code: FindingCode): Finding => ({
  code,
  path: 'a.py',
  line: 1,
  excerpt_sha256: 'a'.repeat(64),
});
const findings = (...codes: FindingCode[]): Findings => ({ schema_version: 1, findings: codes.map(finding) });
const said = (verdict: Verdict, ...reason_codes: string[]): ModelReading => ({
  outcome: 'verdict',
  verdict: { verdict, reason_codes, evidence_paths: [] },
  returnedModel: 'm',
  provider: null,
});
const clean = { findings: findings(), similarity: null, model: said('allow') };

describe('decide', () => {
  it('allows what nothing speaks against, with the one code', () => {
    expect(decide(clean)).toEqual({ verdict: 'allow', reason_codes: ['policy_passed'] });
    expect(decide({ ...clean, model: said('allow', 'some_code') }).reason_codes).toEqual(['policy_passed']);
  });

  it.each(FINDING_CODES)('%s is what its class says', (code) => {
    expect(decide({ ...clean, findings: findings(code) })).toEqual({
      verdict: FINDING_CLASSES[code],
      reason_codes: [code],
    });
  });

  it('escalates similarity, and no valid output of a model', () => {
    expect(decide({ ...clean, similarity: { shared: 9, total: 10 } }).reason_codes).toEqual([
      'similarity_high_risk',
    ]);
    expect(decide({ ...clean, similarity: { shared: 7, total: 10 } })).toEqual({
      verdict: 'escalate',
      reason_codes: ['similarity_medium_risk'],
    });
    expect(decide({ ...clean, model: NOT_ASKED })).toEqual({
      verdict: 'escalate',
      reason_codes: ['model_output_malformed'],
    });
  });

  it('takes the model’s codes for a stricter verdict, but never policy_passed', () => {
    expect(decide({ ...clean, model: said('reject', 'policy_passed') })).toEqual({
      verdict: 'reject',
      reason_codes: ['model_reject'],
    });
    expect(decide({ ...clean, model: said('escalate', 'b', 'a', 'a') }).reason_codes).toEqual(['a', 'b']);
  });

  const anyReading = fc.oneof(
    fc.constant(NOT_ASKED),
    fc
      .tuple(
        fc.constantFrom<Verdict>('allow', 'reject', 'escalate'),
        fc.array(fc.constantFrom('policy_passed', 'x', 'reads_hidden_tests', 'y_1'), { maxLength: 32 }),
      )
      .map(([verdict, codes]) => said(verdict, ...codes)),
  );
  const anyEvidence = fc.record({
    findings: fc
      .array(fc.constantFrom(...FINDING_CODES), { maxLength: 6 })
      .map((codes) => findings(...codes)),
    similarity: fc.option(
      fc.nat(100).map((shared) => ({ shared, total: 100 })),
      { nil: null },
    ),
  });

  it('is never milder for what a model says', () => {
    fc.assert(
      fc.property(anyEvidence, anyReading, (evidence, model) => {
        const without = decide({ ...evidence, model: said('allow') });
        const withModel = decide({ ...evidence, model });
        expect(RANK[withModel.verdict]).toBeGreaterThanOrEqual(RANK[without.verdict]);
        const kept = without.reason_codes.filter((code) => code !== 'policy_passed');
        expect(withModel.reason_codes).toEqual(expect.arrayContaining(kept));
        expect(withModel.reason_codes.length).toBeGreaterThan(0);
        expect(withModel.verdict === 'allow').toBe(withModel.reason_codes.includes('policy_passed'));
      }),
    );
  });

  it('is never milder for one finding more', () => {
    fc.assert(
      fc.property(anyEvidence, anyReading, fc.constantFrom(...FINDING_CODES), (evidence, model, code) => {
        const more = findings(...evidence.findings.findings.map((one) => one.code), code);
        const before = decide({ ...evidence, model });
        expect(RANK[decide({ ...evidence, findings: more, model }).verdict]).toBeGreaterThanOrEqual(
          RANK[before.verdict],
        );
      }),
    );
  });
});
