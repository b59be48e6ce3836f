import { DEADLINES_MS } from './deadline.ts';
import type { Dial } from './dial.ts';
import { parseId } from './docker-answers.ts';
import { execBody } from './docker-create.ts';
import { container, segment } from './docker-paths.ts';
import { FrameParser, FrameReader, type Payload } from './frames.ts';
import type { ExecPipe, ExecSpec, RunningExec } from './port.ts';
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

const startBody = { Detach: false, Tty: false };

const startRequest = (execId: string) => ({
  subject: { call: 'startExec', of: execId },
  deadlineMs: DEADLINES_MS.startExec,
  path: `/exec/${segment(execId)}/start`,
  body: startBody,
});

/** Feeds a reader; of a stream that makes no sense the first error is kept, and the rest is read all the same. */
function tolerant(write: (bytes: Buffer) => void): { take: (bytes: Buffer) => void; verify: () => void } {
  let broken: { error: unknown } | null = null;
  return {
    take: (bytes) => {
      if (broken !== null) return;
      try {
        write(bytes);
      } catch (error) {
        broken = { error };
      }
    },
    verify: () => {
      if (broken !== null) throw broken.error;
    },
  };
}

/** Output is always read, also what makes no sense, so that a process is never held up by us. */
export async function startExec(socketPath: string, execId: string): Promise<RunningExec> {
  const reader = new FrameReader(KEEP_OUTPUT_BYTES);
  const { take, verify } = tolerant((bytes) => reader.write(bytes));
  const connection = await upgrade(socketPath, startRequest(execId), take);
  const output = connection.closed.then(() => {
    verify();
    return reader.captured();
  });
  // Nobody has to look at the output of an exec; its failure must not end the process.
  output.catch(() => {});
  return { id: execId, output, detach: connection.destroy };
}

/** See `Engine.pipeExec`. */
export async function pipeExec(socketPath: string, execId: string, onOutput: Payload): Promise<ExecPipe> {
  const parser = new FrameParser(onOutput);
  const { take, verify } = tolerant((bytes) => parser.write(bytes));
  const { destroy, closed: ended, ...flow } = await upgrade(socketPath, startRequest(execId), take);
  const closed = ended.then(verify);
  closed.catch(() => {});
  return { id: execId, ...flow, closed, detach: destroy };
}
