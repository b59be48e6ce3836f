import type { RunningExec } from '../engine/port.ts';
import type { TarEntry } from '../engine/tar.ts';
import { packTar } from '../engine/tar.ts';
import { isEvaluatorError } from '../errors.ts';
import { DiskWatch } from './disk-watch.ts';
import { interference, isEngineFailure, verifySameContainer } from './faults.ts';
import { type Sandbox, SHELL, TOOLS } from './sandbox.ts';
import type { TrialContext, TrialTask, Upload } from './session.ts';
import { isStartable } from './startable.ts';

/** entry.sh's word that test.sh was run and has ended; nothing inside can make the holder exit. */
const TESTS_ENDED = 100;

/**
 * The engine's name server has no way out of a container whose network was closed, and lets every request wait for its
 * timeout: services that look names up would be as good as gone. This machine's own port refuses at once.
 */
const NO_NAMES = 'echo nameserver 127.0.0.1 >/etc/resolv.conf';

/** How often the VM's free disk is looked at while tests run: what an agent left may be what they start. */
const DISK_LOOK_MS = 250;

/**
 * `ended`: test.sh ran to its end. `timeout`, `disk_limit`: it was killed for its time or for what it wrote.
 * `broken`: it never ran, or the container ended in any other way.
 */
export type VerifierEnd = 'ended' | 'timeout' | 'disk_limit' | 'broken';

/** A container that tests go into. */
export type Target = Pick<Sandbox, 'containerId' | 'secretPath' | 'commitment'>;

const quote = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`;

function environment(task: TrialTask): Buffer {
  const lines = Object.entries(task.verifier.env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return Buffer.from([...lines, `EVALUATOR_WORKDIR=${quote(task.image.workdir)}`, ''].join('\n'));
}

/** The tests and the start marker, below a name that nobody inside could foresee (spec/03, 7). */
function testsTar(secretPath: string, task: TrialTask, tests: readonly Upload[]): Buffer {
  const root = secretPath.slice(1);
  const directories = new Set<string>();
  for (const { path } of tests) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1))
      directories.add(path.slice(0, at));
  }
  const entries: TarEntry[] = [
    { path: './', directory: true },
    { path: root, directory: true },
    { path: `${root}/env`, bytes: environment(task), mode: 0o644 },
    { path: `${root}/tests`, directory: true },
    ...[...directories].sort().map((path): TarEntry => ({ path: `${root}/tests/${path}`, directory: true })),
    ...tests.map(
      ({ path, bytes, executable }): TarEntry => ({
        path: `${root}/tests/${path}`,
        bytes,
        mode: executable || path === 'test.sh' ? 0o755 : 0o644,
      }),
    ),
  ];
  return packTar(entries);
}

/** Brings the tests into a container: the stopped one of a second life, or the running one of a live task. */
export async function uploadTests(
  context: TrialContext,
  target: Target,
  task: TrialTask,
  tests: readonly Upload[],
): Promise<void> {
  await context.uploads(() =>
    context.engine.putArchive(target.containerId, '/', testsTar(target.secretPath, task, tests)),
  );
}

async function killQuietly(context: TrialContext, containerId: string): Promise<void> {
  try {
    await context.engine.kill(containerId);
  } catch (error) {
    // It may have ended between the timeout and the kill.
    if (!isEvaluatorError(error, 'engine_conflict')) throw error;
  }
}

/** Tests that stood still because somebody paused them were not slow; a kill would hide it. */
async function verifyNotPaused(context: TrialContext, target: Target): Promise<void> {
  await verifySameContainer(context, { ...target, started: null });
}

/**
 * The second life: starts the stopped container again; the holder finds the tests, runs test.sh and exits.
 * @throws engine_* when the engine fails after the start, or the container is gone; any other start that
 * fails is `broken`. container_interfered when it was running already.
 */
export async function runSecondLife(
  context: TrialContext,
  target: Target,
  task: TrialTask,
): Promise<VerifierEnd> {
  if (!(await isStartable(context.engine, target.containerId))) return 'broken';
  try {
    await context.engine.start(target.containerId);
  } catch (error) {
    if (isEvaluatorError(error, 'engine_conflict')) throw interference(target.containerId, 'started');
    if (!isEngineFailure(error) || isEvaluatorError(error, 'engine_not_found')) throw error;
    // The start may have happened all the same.
    await killQuietly(context, target.containerId);
    return 'broken';
  }
  return untilHolderExits(context, target, task);
}

/**
 * The same in a container of ours that no agent has seen: a start that fails is the engine's failure.
 * @throws engine_*.
 */
export async function runFreshLife(
  context: TrialContext,
  target: Target,
  task: TrialTask,
): Promise<VerifierEnd> {
  await context.engine.start(target.containerId);
  return untilHolderExits(context, target, task);
}

async function untilHolderExits(
  context: TrialContext,
  target: Target,
  task: TrialTask,
): Promise<VerifierEnd> {
  const exit = context.engine.waitExit(target.containerId, task.verifier.timeoutMs);
  if (!(await endsWithinDisk(context, target, task, exit))) {
    await killQuietly(context, target.containerId);
    return 'disk_limit';
  }
  try {
    return (await exit) === TESTS_ENDED ? 'ended' : 'broken';
  } catch (error) {
    if (!isEvaluatorError(error, 'engine_timeout')) throw error;
    await verifyNotPaused(context, target);
    await killQuietly(context, target.containerId);
    return 'timeout';
  }
}

/** Waits for `end` to settle; false as soon as the container has written too much before. */
async function endsWithinDisk(
  context: TrialContext,
  target: Target,
  task: TrialTask,
  end: Promise<unknown>,
): Promise<boolean> {
  const disk = new DiskWatch(context, target.containerId, task.limits.storage_bytes);
  let ended = false;
  const settled = end.then(
    () => {
      ended = true;
    },
    () => {
      ended = true;
    },
  );
  for (;;) {
    await Promise.race([settled, context.clock.sleep(DISK_LOOK_MS)]);
    if (ended) return true;
    if (disk.isOver()) return false;
    disk.look();
  }
}

/** Verifies in a running container whose services must go on, as one exec, and kills it after (spec/03, 8). */
export async function runLiveVerifier(
  context: TrialContext,
  target: Target,
  task: TrialTask,
): Promise<VerifierEnd> {
  let exec: RunningExec | null = null;
  try {
    if (!(await isStartable(context.engine, target.containerId))) return 'broken';
    const execId = await context.engine.createExec(target.containerId, {
      command: [
        ...SHELL,
        '-c',
        `${NO_NAMES}; exec "$@"`,
        'sh',
        ...SHELL,
        `${TOOLS}/entry.sh`,
        'live',
        target.commitment,
      ],
      env: [],
      workingDir: '/',
      user: '0',
    });
    exec = await context.engine.startExec(execId);
    return await untilExecEnds(context, target, task, exec);
  } finally {
    exec?.detach();
    await killQuietly(context, target.containerId);
  }
}

async function untilExecEnds(
  context: TrialContext,
  target: Target,
  task: TrialTask,
  exec: RunningExec,
): Promise<VerifierEnd> {
  const disk = new DiskWatch(context, target.containerId, task.limits.storage_bytes);
  const deadline = context.clock.monotonicMs() + task.verifier.timeoutMs;
  let open = true;
  const streams = exec.output
    .catch(() => null)
    .then(() => {
      open = false;
    });
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 1000)) {
    const leftMs = deadline - context.clock.monotonicMs();
    if (leftMs <= 0) {
      await verifyNotPaused(context, target);
      return 'timeout';
    }
    if (disk.isOver()) return 'disk_limit';
    disk.look();
    const pause = context.clock.sleep(Math.min(waitMs, leftMs));
    await (open ? Promise.race([streams, pause]) : pause);
    const state = await context.engine.execState(exec.id);
    if (!state.running && state.exitCode !== null) return state.exitCode === TESTS_ENDED ? 'ended' : 'broken';
  }
}
