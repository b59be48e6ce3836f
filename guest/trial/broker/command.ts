import type { ExecPipe } from '../../engine/port.ts';
import { SHELL, TOOLS } from '../sandbox.ts';
import type { TrialContext } from '../session.ts';
import { isStartable } from '../startable.ts';
import { CommandCapture } from './capture.ts';
import { type Answer, type ExecCall, refusal } from './protocol.ts';

/** Says its process id, which is its group's too (the engine's exec is a session of its own), and becomes the shell. */
const BECOME_SHELL = `echo $$ >&2
for shell in bash sh; do command -v $shell >/dev/null && exec $shell -c "$1"; done
exec ${TOOLS}/busybox sh -c "$1"`;

/** How often the engine is asked whether a command has ended while something holds its output open. */
const FIRST_LOOK_MS = 100;
const MAX_LOOK_MS = 500;
/** How long the output of a command that has ended is waited for, when something else holds it open. */
const DRAIN_MS = 50;
/** How long a command gets to say its process id, and to be gone when it was killed. */
const KILL_WITHIN_MS = 5000;

/** The one container that a broker acts on. */
export interface BrokerTarget {
  containerId: string;
  workdir: string;
}

type End = { exitCode: number } | 'timeout' | 'cancelled';
type Context = Pick<TrialContext, 'engine' | 'clock'>;

function createCommand({ engine }: Context, target: BrokerTarget, call: ExecCall): Promise<string> {
  return engine.createExec(target.containerId, {
    command: [...SHELL, '-c', BECOME_SHELL, 'sh', call.command],
    env: Object.entries(call.env ?? {}).map(([name, value]) => `${name}=${value}`),
    workingDir: call.cwd ?? target.workdir,
    user: call.user ?? '0',
  });
}

/** Resolves when the signal is aborted; never when it is not. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

async function untilEnd(
  { engine, clock }: Context,
  pipe: ExecPipe,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<End> {
  const deadline = clock.monotonicMs() + timeoutMs;
  const ended = aborted(signal);
  let closed: Promise<void> | null = pipe.closed
    .catch(() => undefined)
    .then(() => {
      closed = null;
      waitMs = 1;
    });
  let waitMs = FIRST_LOOK_MS;
  for (;;) {
    const leftMs = deadline - clock.monotonicMs();
    const pause = clock.sleep(Math.max(0, Math.min(waitMs, leftMs)));
    await Promise.race(closed === null ? [pause, ended] : [closed, pause, ended]);
    const { running, exitCode } = await engine.execState(pipe.id);
    if (!running && exitCode !== null) return { exitCode };
    if (signal.aborted) return 'cancelled';
    if (clock.monotonicMs() >= deadline) return 'timeout';
    waitMs = Math.min(waitMs * 2, MAX_LOOK_MS);
  }
}

/**
 * No engine call stops an exec: its process group is killed from inside (spec/03, Engine). One that has made the
 * account files what no start may meet goes on, until its container ends.
 */
async function killGroup(context: Context, target: BrokerTarget, pipe: ExecPipe, pid: number): Promise<void> {
  const { engine, clock } = context;
  if (!(await isStartable(engine, target.containerId))) return;
  const execId = await engine.createExec(target.containerId, {
    command: [`${TOOLS}/busybox`, 'kill', '-KILL', `-${pid}`],
    env: [],
    workingDir: '/',
    user: '0',
  });
  const kill = await engine.startExec(execId);
  await Promise.race([kill.output.catch(() => null), clock.sleep(KILL_WITHIN_MS)]);
  kill.detach();
  await untilEnd(context, pipe, KILL_WITHIN_MS, new AbortController().signal);
}

/**
 * Runs one command of an agent in the task's container, as one exec of the engine, until it has ended; what it
 * left running goes on. After `timeout_sec`, or when `signal` is aborted, its process group is killed.
 * @throws engine_*.
 */
export async function runCommand(
  context: Context,
  target: BrokerTarget,
  call: ExecCall,
  signal: AbortSignal,
): Promise<Answer> {
  const { engine, clock } = context;
  const [startable, execId] = await Promise.all([
    isStartable(engine, target.containerId),
    createCommand(context, target, call),
  ]);
  if (!startable) return refusal('refused', '/etc/passwd and /etc/group must be small regular files');
  const capture = new CommandCapture();
  const pipe = await engine.pipeExec(execId, (stream, bytes) => capture.write(stream, bytes));
  try {
    const end = await untilEnd(context, pipe, (call.timeout_sec ?? Number.POSITIVE_INFINITY) * 1000, signal);
    if (typeof end === 'object') {
      await Promise.race([pipe.closed.catch(() => undefined), clock.sleep(DRAIN_MS)]);
      capture.end();
      return await answerOf(end.exitCode, capture);
    }
    const pid = await Promise.race([capture.pid, clock.sleep(KILL_WITHIN_MS).then(() => null)]);
    if (pid !== null) await killGroup(context, target, pipe, pid);
    return end === 'timeout'
      ? refusal('timeout', `Command timed out after ${call.timeout_sec} seconds`)
      : refusal('cancelled', 'the call was ended');
  } finally {
    pipe.detach();
  }
}

/** What could not be started has no process id, and the engine's text on stdout: it is no output of a command. */
async function answerOf(exitCode: number, capture: CommandCapture): Promise<Answer> {
  const printed = capture.printed();
  if ((await capture.pid) !== null) return { ...printed, return_code: exitCode };
  return { ...printed, stdout: '', stderr: printed.stdout + printed.stderr, return_code: exitCode };
}
