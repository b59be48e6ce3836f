import { z } from 'zod';
import { parseForeignJson } from '../../wire/foreign-json.ts';

/** Traces of failed tests travel in a report; an agent can have written it, and reading it holds up our timers. */
export const MAX_CTRF_BYTES = 2 * 1024 * 1024;
/** Many times what a task has. Looked at before the schema, which reports every entry that is wrong. */
const MAX_TESTS = 10_000;
const LIMITS = { maxBytes: MAX_CTRF_BYTES, maxDepth: 32 };
const count = z.int().nonnegative();

const sizedSchema = z.object({ results: z.object({ tests: z.array(z.unknown()) }) });

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
  const sized = sizedSchema.safeParse(value);
  if (!sized.success || sized.data.results.tests.length > MAX_TESTS) return null;
  const report = reportSchema.safeParse(value);
  if (!report.success) return null;
  const { summary, tests } = report.data.results;
  const passed = tests.filter((test) => test.status === 'passed').length;
  return summary.tests === tests.length && summary.passed === passed ? { passed, tests: tests.length } : null;
}
