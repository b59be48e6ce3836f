import type { IncomingMessage } from 'node:http';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { DEADLINES_MS, withDeadline } from './deadline.ts';
import type { Dial } from './dial.ts';
import { connectionError } from './engine-error.ts';

const MAX_LINE_CHARACTERS = 1024 * 1024;

/**
 * Pulls `ref`, which must name a tag or a digest: without one the engine would pull every tag. Whether the
 * image is there afterwards is to be asked with `image`.
 */
export async function pullImage(dial: Dial, ref: string): Promise<void> {
  const lastPart = ref.slice(ref.lastIndexOf('/') + 1);
  if (!/[:@]/.test(lastPart)) {
    throw new EvaluatorError('engine_error', `pull ${ref}: names no tag and no digest`);
  }
  const subject = { call: 'pull', of: ref };
  await withDeadline(`pull ${ref}`, DEADLINES_MS.pull, async (signal) => {
    const progress = await dial.stream({
      subject,
      deadlineMs: DEADLINES_MS.pull,
      method: 'POST',
      path: '/images/create',
      query: { fromImage: ref },
    });
    signal.addEventListener('abort', () => progress.destroy());
    try {
      await followProgress(progress, ref);
    } catch (error) {
      throw isEvaluatorError(error) ? error : connectionError(subject, error);
    }
  });
}

/** The answer is 200 before anything was pulled: a failure is a line of the progress. */
async function followProgress(progress: IncomingMessage, ref: string): Promise<void> {
  let rest = '';
  for await (const chunk of progress.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARACTERS)
      throw new EvaluatorError('engine_error', `pull ${ref}: endless line`);
    for (const line of lines) {
      const failure = failureIn(line);
      if (failure !== null) throw new EvaluatorError('engine_error', `pull ${ref}: ${failure}`);
    }
  }
}

function failureIn(line: string): string | null {
  if (!line.includes('"error"')) return null;
  try {
    const { error }: { error?: unknown } = JSON.parse(line);
    return typeof error === 'string' ? error.slice(0, 400) : 'failed';
  } catch {
    return 'the progress is not JSON';
  }
}
