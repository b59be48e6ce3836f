import { BROKER_SOCKET, RUNTIME_FOLDER } from '../../agent-runtime/files.ts';
import type { ExecPipe } from '../../engine/port.ts';
import { EvaluatorError } from '../../errors.ts';
import type { TrialContext } from '../session.ts';
import type { BrokerServer } from './server.ts';

const READY = Buffer.from('ready\n');
const READY_WITHIN_MS = 20_000;

/**
 * Starts the sandbox's end of the broker, before any code of the agent, and connects it to `server`.
 * @throws holder_not_running when it does not come up; engine_*.
 */
export async function openBridge(
  context: Pick<TrialContext, 'engine' | 'clock'>,
  sandboxId: string,
  server: BrokerServer,
): Promise<ExecPipe> {
  const { engine, clock } = context;
  const ready = Promise.withResolvers<boolean>();
  let head: Buffer | null = Buffer.alloc(0);
  const execId = await engine.createExec(sandboxId, {
    command: ['python3', '-S', `${RUNTIME_FOLDER}/bridge.py`, BROKER_SOCKET],
    env: ['PYTHONDONTWRITEBYTECODE=1'],
    workingDir: '/',
    user: '0',
    stdin: 'open',
  });
  const pipe = await engine.pipeExec(execId, (stream, bytes) => {
    if (stream !== 'stdout') return;
    if (head === null) {
      server.receive(bytes);
      return;
    }
    head = Buffer.concat([head, bytes]);
    if (head.length < READY.length) return;
    ready.resolve(head.subarray(0, READY.length).equals(READY));
    const rest = head.subarray(READY.length);
    head = null;
    server.receive(rest);
  });
  const never = pipe.closed.then(
    () => false,
    () => false,
  );
  const late = clock.sleep(READY_WITHIN_MS).then(() => false);
  if (!(await Promise.race([ready.promise, never, late]))) {
    pipe.detach();
    throw new EvaluatorError(
      'holder_not_running',
      `sandbox ${sandboxId}: the broker's bridge did not start; has the agent runtime image a python3?`,
    );
  }
  server.attach(pipe);
  return pipe;
}
