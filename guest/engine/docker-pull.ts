import { createInterface } from 'node:readline';
import { EvaluatorError } from '../errors.ts';
import { DEADLINES_MS, withDeadline } from './deadline.ts';
import type { Dial } from './dial.ts';

/** Pulls `ref`, which must name a tag or a digest: without one the engine would pull every tag. */
export async function pullImage(dial: Dial, ref: string): Promise<void> {
  const lastPart = ref.slice(ref.lastIndexOf('/') + 1);
  if (!/[:@]/.test(lastPart)) {
    throw new EvaluatorError('engine_error', `pull ${ref}: names no tag and no digest`);
  }
  const request = {
    subject: { call: 'pull', of: ref },
    deadlineMs: DEADLINES_MS.pull,
    method: 'POST',
    path: '/images/create',
    query: { fromImage: ref },
  } as const;
  await withDeadline(`pull ${ref}`, DEADLINES_MS.pull, async (signal) => {
    const progress = await dial.stream(request);
    signal.addEventListener('abort', () => progress.destroy());
    // The answer is 200 before anything was pulled; a failure is a line of the progress.
    for await (const line of createInterface({ input: progress })) {
      const failure = failureIn(line);
      if (failure !== null) throw new EvaluatorError('engine_error', `pull ${ref}: ${failure}`);
    }
  });
}

function failureIn(line: string): string | null {
  if (!line.includes('"error"')) return null;
  const { error }: { error?: unknown } = JSON.parse(line);
  return typeof error === 'string' ? error.slice(0, 400) : null;
}
