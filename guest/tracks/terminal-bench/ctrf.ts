import { z } from 'zod';
import { parseForeignJson } from '../../wire/foreign-json.ts';

/** Traces of failed tests travel in a report, so it may be large. */
export const MAX_CTRF_BYTES = 8 * 1024 * 1024;
const LIMITS = { maxBytes: MAX_CTRF_BYTES, maxDepth: 32 };
const count = z.int().nonnegative();

/** As much of a CTRF report as proves that tests ran; reporters add more, which is of no account. */
const reportSchema = z.object({
  results: z.object({
    tool: z.object({ name: z.string().min(1) }),
    summary: z.object({
      tests: count,
      passed: count,
      failed: count,
      skipped: count,
      pending: count,
      other: count,
    }),
    tests: z.array(
      z.object({
        name: z.string(),
        status: z.enum(['passed', 'failed', 'skipped', 'pending', 'other']),
      }),
    ),
  }),
});

/**
 * Reads a CTRF report: well-formed, and its summary agrees with its tests. Zero tests are fine: a collection
 * error is a wrong answer, not a broken verifier (spec/03, Reward).
 * @returns null when it proves nothing.
 */
export function parseCtrf(bytes: Buffer): { passed: number; tests: number } | null {
  let value: unknown;
  try {
    value = parseForeignJson(bytes, LIMITS);
  } catch {
    return null;
  }
  const report = reportSchema.safeParse(value);
  if (!report.success) return null;
  const { summary, tests } = report.data.results;
  const passed = tests.filter((test) => test.status === 'passed').length;
  return summary.tests === tests.length && summary.passed === passed ? { passed, tests: tests.length } : null;
}
