import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connectGuestAgent, findGuestAgentSocket, refuseSimulatorVariable } from '../attest/dstack.ts';
import { EvaluatorError } from '../errors.ts';
import { asEvaluatorError, EXIT, exitCodeOf, SIGNAL_EXIT } from '../process/exit-codes.ts';
import { createJsonLog } from '../process/json-log.ts';
import { apiBaseUrl, parseSessionToken } from '../wire/assignment.ts';
import { MODEL_ENDPOINT } from '../wire/model-request.ts';
import { pem } from '../wire/scalars.ts';
import type { ModelEndpoint, ReviewEvent, ReviewHost, ReviewInputs } from './config.ts';
import { deliverFailure } from './deliver.ts';
import { MODEL_LIMITS, parseModelUrl } from './model-call.ts';
import { reportError } from './steps.ts';

/** A call of the guest agent has this long: a hung one has been a silent, billed VM (spec/04). */
const GUEST_AGENT_DEADLINE_MS = 90_000;
const MAX_KEY = 512;

function required(value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new EvaluatorError('usage', `${what} is missing`);
  return value;
}

function readArguments(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    strict: true,
    allowPositionals: false,
    options: {
      'plan-root': { type: 'string' },
      'challenge-id': { type: 'string' },
      'guest-agent-socket': { type: 'string' },
      'model-endpoint': { type: 'string', default: MODEL_ENDPOINT },
      'model-ca': { type: 'string' },
      'no-model': { type: 'boolean', default: false },
    },
  });
  return values;
}

function readRoot(values: ReturnType<typeof readArguments>) {
  const publicKey = required(values['plan-root'], '--plan-root');
  if (!/^[0-9a-f]{64}$/.test(publicKey))
    throw new EvaluatorError('usage', '--plan-root must be 64 lower-case hex digits');
  return { publicKey, challengeId: required(values['challenge-id'], '--challenge-id') };
}

/** The PEM, in base64url because a variable holds one line. */
function readCa(text: string): string {
  const parsed = pem.safeParse(
    /^[A-Za-z0-9_-]+$/.test(text) ? Buffer.from(text, 'base64url').toString('latin1') : '',
  );
  if (!parsed.success) throw new EvaluatorError('usage', 'REVIEW_SERVER_CA must be the base64url of a PEM');
  return parsed.data;
}

function readInputs(env: NodeJS.ProcessEnv): ReviewInputs {
  const token = required(env.REVIEW_SESSION_TOKEN, 'REVIEW_SESSION_TOKEN');
  const url = apiBaseUrl.safeParse(required(env.REVIEW_API_BASE_URL, 'REVIEW_API_BASE_URL'));
  if (!url.success) throw new EvaluatorError('usage', 'REVIEW_API_BASE_URL must be https://host[:port]');
  return {
    assignmentId: parseSessionToken(token).assignmentId,
    token,
    apiBaseUrl: url.data,
    serverCaPem: env.REVIEW_SERVER_CA === undefined ? null : readCa(env.REVIEW_SERVER_CA),
  };
}

function readModel(values: ReturnType<typeof readArguments>, env: NodeJS.ProcessEnv): ModelEndpoint | null {
  if (values['no-model']) return null;
  const apiKey = required(env.OPENROUTER_API_KEY, 'OPENROUTER_API_KEY');
  // A header's value: anything else would be the miner's own text in our request.
  if (apiKey.length > MAX_KEY || !/^[\x21-\x7e]+$/.test(apiKey))
    throw new EvaluatorError('usage', 'OPENROUTER_API_KEY must be visible ASCII');
  const ca = values['model-ca'];
  return {
    url: parseModelUrl(values['model-endpoint']),
    caPem: ca === undefined ? null : readFileSync(ca, 'utf8'),
    apiKey,
  };
}

function createHost(signal: AbortSignal, journal: ReviewHost['journal']): ReviewHost {
  refuseSimulatorVariable(process.env);
  const values = readArguments(process.argv.slice(2));
  return {
    planRoot: readRoot(values),
    inputs: readInputs(process.env),
    model: readModel(values, process.env),
    modelLimits: MODEL_LIMITS,
    connectAgent: () =>
      connectGuestAgent({
        socketPath: values['guest-agent-socket'] ?? findGuestAgentSocket(),
        deadlineMs: GUEST_AGENT_DEADLINE_MS,
      }),
    nowMs: Date.now,
    sleep: (ms) => sleep(ms),
    randomHex: (bytes) => randomBytes(bytes).toString('hex'),
    journal,
    signal,
    progress: { serverCaPem: null, plannedRequestSha256: null },
  };
}

/** Rejects once a signal, or an error that nobody caught, has ended the review. */
function interruption(stop: AbortController): { exitCode: () => number | null; happened: Promise<never> } {
  const { promise, reject } = Promise.withResolvers<never>();
  let exitCode: number | null = null;
  const end = (reason: EvaluatorError, code: number) => {
    exitCode = code;
    stop.abort(reason);
    reject(reason);
  };
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () =>
      end(new EvaluatorError('review_aborted', `ended by ${name}`), SIGNAL_EXIT[name]),
    );
  }
  process.on('uncaughtException', (cause) =>
    end(new EvaluatorError('review_aborted', `unexpected: ${cause.message}`, { cause }), EXIT.aborted),
  );
  return { exitCode: () => exitCode, happened: promise };
}

/**
 * Runs `review` as a process: reads its command line and environment, tells the challenge of a failure, and ends
 * with a documented exit code: 0 a report was received, whatever its verdict; 2, 3 or 5 by the fault.
 */
export async function main(review: (host: ReviewHost) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const journal = createJsonLog<ReviewEvent>(2);
  let host: ReviewHost;
  try {
    host = createHost(stop.signal, journal);
  } catch (error) {
    reportError(journal, null, error);
    process.exit(exitCodeOf(asEvaluatorError(error)));
  }
  const interrupted = interruption(stop);
  let exitCode: number = EXIT.accepted;
  try {
    await Promise.race([review(host), interrupted.happened]);
  } catch (error) {
    const failure = asEvaluatorError(error);
    exitCode = interrupted.exitCode() ?? exitCodeOf(failure);
    if (interrupted.exitCode() !== null) reportError(journal, null, failure);
    // Its own signal: the review's has been given.
    await deliverFailure(failure, { ...host, signal: new AbortController().signal });
  }
  try {
    journal.write({ event: 'ended', peak_rss_bytes: process.resourceUsage().maxRSS * 1024 });
  } catch {
    // The exit code still says how.
  }
  process.exit(exitCode);
}
