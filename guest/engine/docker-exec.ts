import { DEADLINES_MS } from './deadline.ts';
import type { Dial } from './dial.ts';
import { parseId } from './docker-answers.ts';
import { execBody } from './docker-create.ts';
import { container, segment } from './docker-paths.ts';
import { FrameReader } from './frames.ts';
import type { ExecSpec, RunningExec } from './port.ts';
import { upgrade } from './upgrade.ts';

/** How much of the start, and of the end, of each output stream of an exec is kept. */
const KEEP_OUTPUT_BYTES = 64 * 1024;

export async function createExec(dial: Dial, id: string, spec: ExecSpec): Promise<string> {
  const created = await dial.json({
    subject: { call: 'createExec', of: id, env: spec.env },
    deadlineMs: DEADLINES_MS.createExec,
    method: 'POST',
    path: `${container(id)}/exec`,
    body: execBody(spec),
  });
  return parseId('createExec', created);
}

/** Output is always read, also what makes no sense, so that a process is never held up by us. */
export async function startExec(socketPath: string, execId: string): Promise<RunningExec> {
  const reader = new FrameReader(KEEP_OUTPUT_BYTES);
  let broken: { error: unknown } | null = null;
  const connection = await upgrade(
    socketPath,
    {
      subject: { call: 'startExec', of: execId },
      deadlineMs: DEADLINES_MS.startExec,
      path: `/exec/${segment(execId)}/start`,
      body: { Detach: false, Tty: false },
    },
    (bytes) => {
      if (broken !== null) return;
      try {
        reader.write(bytes);
      } catch (error) {
        broken = { error };
      }
    },
  );
  const output = connection.closed.then(() => {
    if (broken !== null) throw broken.error;
    return reader.captured();
  });
  // Nobody has to look at the output of an exec; its failure must not end the process.
  output.catch(() => {});
  return { id: execId, output, detach: connection.destroy };
}
