import { asEvaluatorError } from '../process/exit-codes.ts';
import type { ReviewHost } from './config.ts';

/** The nine steps of spec/09, in their order. */
export const STEPS = [
  'assignment',
  'artifact',
  'rules',
  'findings',
  'announce',
  'model',
  'decide',
  'attest',
  'report',
] as const;
export type Step = (typeof STEPS)[number];

/** Marks a step's begin and end, so that a stuck or failed VM says where it was. */
export async function inStep<T>(host: ReviewHost, step: Step, body: () => Promise<T>): Promise<T> {
  host.signal.throwIfAborted();
  host.journal.write({ event: 'step', step, mark: 'begin' });
  try {
    const value = await body();
    host.journal.write({ event: 'step', step, mark: 'end' });
    return value;
  } catch (error) {
    reportError(host.journal, step, error);
    throw error;
  }
}

/** The error's place and code, in a log that may itself be what failed. */
export function reportError(journal: ReviewHost['journal'], step: Step | null, error: unknown): void {
  const { code, fault, message } = asEvaluatorError(error);
  try {
    journal.write({ event: 'error', step, code, fault, message });
  } catch {
    // The exit code still says it.
  }
}
