import { Worker } from 'node:worker_threads';
import { EvaluatorError } from '../../errors.ts';
import type { Finding } from '../../wire/review-decision.ts';
import type { Knowledge } from './detect/context.ts';
import type { Member } from './findings.ts';

/** A parser that does not end is killed with its thread; what it was at is refused. */
export const ANALYSIS_DEADLINE_MS = 60_000;
const HEAP_MB = 256;

export interface AnalysisInput {
  /** Ascending by path. */
  members: readonly Member[];
  knowledge: Knowledge;
}

export interface AnalysisOutput {
  findings: Finding[];
  /** Ascending. */
  fingerprints: number[];
}

/**
 * Analyses a package in a thread of its own, so that nothing in it can hold the guest up. The budgets inside
 * end long before; the deadline is for a defect of a parser.
 * @throws analysis_limit: it took too long, or too much memory.
 */
export async function analysePackage(input: AnalysisInput, deadlineMs: number): Promise<AnalysisOutput> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: input,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    env: {},
    execArgv: [],
  });
  const { promise, resolve, reject } = Promise.withResolvers<AnalysisOutput>();
  const refuse = (what: string, cause?: unknown) =>
    reject(
      new EvaluatorError('analysis_limit', `static analysis: ${what}; make the package simpler`, { cause }),
    );
  const timer = setTimeout(() => refuse(`not done within ${deadlineMs} ms`), deadlineMs);
  worker.once('message', (output: AnalysisOutput) => resolve(output));
  worker.once('error', (cause) =>
    refuse(cause instanceof Error ? cause.message.slice(0, 200) : 'failed', cause),
  );
  worker.once('exit', () => refuse('ended early'));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
