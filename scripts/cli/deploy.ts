import { setTimeout as sleep } from 'node:timers/promises';
import { composeHash } from '../../compose/app-compose.ts';
import { renderComposed } from '../../compose/parse.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { decodeF64be } from '../../guest/wire/f64.ts';
import { readAwaited } from '../deploy/awaited.ts';
import type { Cloud } from '../deploy/cloud.ts';
import { deploy as deployOrder } from '../deploy/deploy.ts';
import { describe, intentText } from '../deploy/dry-run.ts';
import { dropIfEmpty, keepDeployment, keepResult } from '../deploy/kept.ts';
import { type DeployOptions, HELP, readDeployOptions } from '../deploy/options.ts';
import type { Clock, Order } from '../deploy/order.ts';
import { withSignals } from '../deploy/signals.ts';
import { readVariables, type Variables, verifyComplete } from '../deploy/variables.ts';
import { askForWord, exitCodeOfWord } from '../deploy/verdict.ts';
import type { Watched } from '../deploy/watch.ts';
import { showEvent } from '../run/journal.ts';
import { printHelp } from './arguments.ts';
import { outputFolder, timeName } from './paths.ts';

const CALL_TIMEOUT_MS = 60_000;

const clock: Clock = {
  nowMs: Date.now,
  sleep: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
};

/** Null without an API key. The client is loaded here: it takes a second, which a refusal need not wait for. */
async function connect({ apiKey, apiUrl }: DeployOptions): Promise<Cloud | null> {
  if (apiKey === null) return null;
  const { connectPhala } = await import('../deploy/phala.ts');
  return connectPhala({ apiKey, apiUrl, callTimeoutMs: CALL_TIMEOUT_MS });
}

/** @throws as readAwaited, deploy_env_invalid, usage. */
function orderOf(options: DeployOptions, appCompose: Buffer, variables: Variables): Order {
  const { kmsSigner, maxHourly, composed, instanceType } = options;
  if (kmsSigner === null || maxHourly === null)
    throw new EvaluatorError('usage', 'deploy: --kms-signer and --max-cost are missing');
  verifyComplete(variables, options.optionalEnv);
  const hash = composeHash(appCompose);
  return {
    ...options,
    kmsSigner,
    maxHourly,
    appCompose,
    composeHash: hash,
    values: variables.values,
    awaited: readAwaited({ composed, composeHash: hash, instanceType }, variables.values, Date.now()),
  };
}

async function dryRun(options: DeployOptions, appCompose: Buffer, variables: Variables): Promise<number> {
  const { composed, instanceType } = options;
  const hash = composeHash(appCompose);
  // A plan that is here is checked; one that is not may still come.
  if (variables.missing.every((name) => options.optionalEnv.has(name)))
    readAwaited({ composed, composeHash: hash, instanceType }, variables.values, Date.now());
  const intent = await describe(options, hash, variables, await connect(options));
  process.stdout.write(options.format === 'json' ? `${JSON.stringify(intent)}\n` : intentText(intent));
  return 0;
}

function report(options: DeployOptions, order: Order, watched: Watched, resultPath: string | null): void {
  const { state, reasonCode, scoreF64be } = watched.word;
  const score = scoreF64be === null ? null : decodeF64be(scoreF64be);
  const summary = {
    mode: options.mode,
    role: order.composed.role,
    vm: order.name,
    compose_hash: order.composeHash,
    state,
    reason_code: reasonCode,
    score,
    result: resultPath,
  };
  const line = `${[state, reasonCode, score === null ? null : `score ${score.toFixed(4)}`].filter((part) => part !== null).join(', ')}; RESULT ${resultPath === null ? 'was not in the public log' : `in ${resultPath}`}`;
  process.stdout.write(options.format === 'json' ? `${JSON.stringify(summary)}\n` : `${line}\n`);
}

async function real(options: DeployOptions, order: Order, signal: AbortSignal): Promise<number> {
  const cloud = await connect(options);
  if (!cloud) throw new EvaluatorError('usage', 'deploy: set PHALA_CLOUD_API_KEY');
  const out = outputFolder('deploy', options.out ?? `out/${timeName(Date.now())}`);
  try {
    const watched = await deployOrder(order, {
      cloud,
      ask: () => askForWord(order.awaited),
      clock,
      show: showEvent,
      signal,
      beforeCreation: (hourly) => keepDeployment(out, order, hourly),
    });
    const resultPath = keepResult(out, watched, order.awaited.evalRunId);
    report(options, order, watched, resultPath);
    return exitCodeOfWord(order.composed.role, watched.word);
  } finally {
    dropIfEmpty(out);
  }
}

/**
 * `evaluator deploy`: one guest on Phala Cloud, from its price to the challenge's judgement.
 * @returns the exit code.
 * @throws usage, the codes of an input that is refused, deploy_*, cloud_*.
 */
export async function deploy(argv: readonly string[]): Promise<number> {
  const options = readDeployOptions(argv, process.env);
  if (options === null) return printHelp(HELP);
  const appCompose = renderComposed(options.composed);
  const variables = readVariables(options.envNames, options.envFile, process.env);
  if (options.mode === 'dry-run') return dryRun(options, appCompose, variables);
  const order = orderOf(options, appCompose, variables);
  return withSignals(
    (signal) => real(options, order, signal),
    () => showEvent({ event: 'progress', message: 'deleting first; wait' }),
  );
}
