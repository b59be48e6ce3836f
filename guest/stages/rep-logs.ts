import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Captured } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import type { FinishedRep } from '../tracks/track.ts';

/** What was kept of a stream, and how much was not. */
export function shown({ head, tail, totalBytes }: Captured): Buffer {
  const kept = head.length + tail.length;
  if (totalBytes <= kept) return Buffer.concat([head, tail]);
  return Buffer.concat([head, Buffer.from(`\n[... ${totalBytes - kept} bytes left out ...]\n`), tail]);
}

/**
 * A local run's logs of one rep: what the agent and the tests printed (bounded), what it answered, and its record.
 * @throws log_unwritable: a run whose own log cannot be written ends (spec/08).
 */
export async function writeRepLogs(directory: string, done: FinishedRep): Promise<void> {
  const folder = join(directory, done.taskId, String(done.record.rep));
  try {
    await mkdir(folder, { recursive: true });
    const output = await done.first.output();
    if (output) {
      await writeFile(join(folder, 'agent.stdout'), shown(output.stdout));
      await writeFile(join(folder, 'agent.stderr'), shown(output.stderr));
    }
    if (done.testOutput) await writeFile(join(folder, 'tests.output'), done.testOutput);
    if (done.answer) await writeFile(join(folder, 'result.json'), done.answer);
    await writeFile(join(folder, 'rep.json'), `${JSON.stringify(done.record, null, 2)}\n`);
  } catch (cause) {
    throw new EvaluatorError(
      'log_unwritable',
      `${folder}: cannot be written (${(cause as Error).message}); free disk space or choose another --out`,
      { cause },
    );
  }
}
