import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { connectGuestAgent, findGuestAgentSocket, refuseSimulatorVariable } from '../attest/dstack.ts';
import { connectDocker } from '../engine/docker.ts';
import { EvaluatorError } from '../errors.ts';
import { asEvaluatorError, EXIT, exitCodeOf, SIGNAL_EXIT } from '../process/exit-codes.ts';
import { systemClock } from '../trial/clock.ts';
import { newSession } from '../trial/labels.ts';
import { endSession, sweepSession } from '../trial/sweep.ts';
import { CACHE_DIRECTORY, type GuestConfig, type GuestInputs, type Host } from './config.ts';
import { createJournal, type Journal, type Stage } from './journal.ts';
import { containerOf } from './own-container.ts';

/** A call of the guest agent has this long: a hung one has been a silent, billed VM (spec/04). */
const GUEST_AGENT_DEADLINE_MS = 90_000;
/** How long an aborted run may take to let go of what it is at. */
const SETTLE_MS = 5_000;
/** Linux hands no longer variable to a process. */
const MAX_PLAN_VARIABLE = 128 * 1024;

/** Marks a stage's begin and end, so that a stuck or failed VM says where it was. */
export async function inStage<T>(host: Host, stage: Stage, body: () => Promise<T>): Promise<T> {
  host.signal.throwIfAborted();
  host.journal.write({ event: 'stage', stage, mark: 'begin' });
  try {
    const value = await body();
    host.journal.write({ event: 'stage', stage, mark: 'end' });
    return value;
  } catch (error) {
    report(host.journal, stage, error);
    throw error;
  }
}

/** The error's place and code, in a log that may itself be what failed. */
function report(journal: Journal, stage: Stage | null, error: unknown): void {
  const { code, fault, message } = asEvaluatorError(error);
  try {
    journal.write({ event: 'error', stage, code, fault, message });
  } catch {
    // The exit code still says it.
  }
}

function reportEnd(journal: Journal): void {
  try {
    journal.write({ event: 'ended', peak_rss_bytes: process.resourceUsage().maxRSS * 1024 });
  } catch {
    // The exit code still says how.
  }
}

function required(value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new EvaluatorError('usage', `${what} is missing`);
  return value;
}

function readConfig(argv: readonly string[]): GuestConfig {
  const { values } = parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: false,
    options: {
      'plan-root': { type: 'string' },
      'challenge-id': { type: 'string' },
      cache: { type: 'string', default: CACHE_DIRECTORY },
      mechanism: { type: 'string', default: new URL('../mechanism.yaml', import.meta.url).pathname },
      'engine-socket': { type: 'string', default: '/var/run/docker.sock' },
      'guest-agent-socket': { type: 'string' },
      solutions: { type: 'string' },
      logs: { type: 'string' },
    },
  });
  const publicKey = required(values['plan-root'], '--plan-root');
  if (!/^[0-9a-f]{64}$/.test(publicKey))
    throw new EvaluatorError('usage', '--plan-root must be 64 lower-case hex digits');
  return {
    planRoot: { publicKey, challengeId: required(values['challenge-id'], '--challenge-id') },
    cacheDirectory: values.cache,
    mechanismFile: values.mechanism,
    engineSocket: values['engine-socket'],
    guestAgentSocket: values['guest-agent-socket'] ?? null,
    solutionsDirectory: values.solutions ?? null,
    logsDirectory: values.logs ?? null,
    orchestratorContainer: containerOf(readFileSync('/proc/self/mountinfo', 'utf8')),
  };
}

function readInputs(env: NodeJS.ProcessEnv): GuestInputs {
  const plan = required(env.EVAL_PLAN, 'EVAL_PLAN');
  if (plan.length > MAX_PLAN_VARIABLE || !/^[A-Za-z0-9_-]+$/.test(plan)) {
    throw new EvaluatorError('usage', 'EVAL_PLAN must be base64url of at most 128 KiB');
  }
  const agentEnv = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  return {
    planBytes: Buffer.from(plan, 'base64url'),
    runToken: required(env.EVAL_RUN_TOKEN, 'EVAL_RUN_TOKEN'),
    agentEnv,
  };
}

function createHost(signal: AbortSignal): Host {
  refuseSimulatorVariable(process.env);
  const config = readConfig(process.argv.slice(2));
  return {
    config,
    inputs: readInputs(process.env),
    engine: connectDocker(config.engineSocket),
    session: newSession(config.orchestratorContainer),
    connectAgent: () =>
      connectGuestAgent({
        socketPath: config.guestAgentSocket ?? findGuestAgentSocket(),
        deadlineMs: GUEST_AGENT_DEADLINE_MS,
      }),
    clock: systemClock,
    nowMs: Date.now,
    journal: createJournal(2),
    print: (line) => process.stdout.write(`${line}\n`),
    signal,
  };
}

/** Resolves with an exit code once a signal, or an error that nobody caught, has aborted the run. */
function interruption(host: Host, stop: AbortController): Promise<number> {
  return new Promise((resolve) => {
    const end = (reason: EvaluatorError, exitCode: number) => {
      stop.abort(reason);
      resolve(exitCode);
    };
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      // Not once: a second one must not end the process before it has cleaned up.
      process.on(name, () => end(new EvaluatorError('run_aborted', `ended by ${name}`), SIGNAL_EXIT[name]));
    }
    process.on('uncaughtException', (error) => {
      report(host.journal, null, error);
      end(asEvaluatorError(error), EXIT.aborted);
    });
  });
}

/**
 * Runs `evaluate` as a process: reads its command line and environment, ends with a documented exit code,
 * and sweeps what this session made, on a signal too.
 */
export async function main(evaluate: (host: Host) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  let host: Host;
  try {
    host = createHost(stop.signal);
  } catch (error) {
    report(createJournal(2), null, error);
    process.exit(exitCodeOf(asEvaluatorError(error)));
  }
  const interrupted = interruption(host, stop);
  const ended = evaluate(host).then(
    () => EXIT.accepted,
    (error) => exitCodeOf(asEvaluatorError(error)),
  );
  let exitCode: number = await Promise.race([ended, interrupted]);
  if (stop.signal.aborted) {
    exitCode = await interrupted;
    await endSession(host.engine, host.session).catch(() => 0);
    // What goes on is given a while to settle, so that nothing is made behind the last sweep.
    await Promise.race([ended, host.clock.sleep(SETTLE_MS)]);
  }
  await sweepSession(host.engine, host.session, host.clock).catch(() => undefined);
  reportEnd(host.journal);
  process.exit(exitCode);
}
