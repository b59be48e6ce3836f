import { existsSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseResult, type Result } from '../../guest/wire/result.ts';
import type { Order } from './order.ts';
import { formatUsd, type NanoUsd } from './usd.ts';
import type { Watched } from './watch.ts';

function write(path: string, bytes: string | Buffer): void {
  try {
    writeFileSync(path, bytes);
  } catch (cause) {
    throw new EvaluatorError('usage', `--out ${path}: cannot be written`, { cause });
  }
}

/** Kept before anything is paid for: should this program be killed, the name says what to delete. @throws usage. */
export function keepDeployment(out: string, order: Order, hourly: NanoUsd): void {
  write(join(out, 'app-compose.json'), order.appCompose);
  const { name, instanceType, osImage, diskGb, composeHash } = order;
  const about = {
    vm: name,
    shape: instanceType,
    os_image: osImage,
    disk_gb: diskGb,
    compose_hash: composeHash,
    hourly: formatUsd(hourly),
  };
  write(join(out, 'deployment.json'), `${JSON.stringify(about, null, 2)}\n`);
}

/** The RESULT in a log line if it is this run's and has the score that the challenge accepted; else null. */
export function resultOf({ word, resultLine }: Watched, evalRunId: string | null): Result | null {
  if (resultLine === null || evalRunId === null) return null;
  try {
    const result = parseResult(resultLine);
    const isOurs = result.eval_run_id === evalRunId;
    const score = result.score_record.final.score_f64be;
    return isOurs && (word.scoreF64be === null || word.scoreF64be === score) ? result : null;
  } catch {
    // A log may say anything.
    return null;
  }
}

/** Writes the exact RESULT bytes of the log if they are this run's. @returns their path, or null. @throws usage. */
export function keepResult(out: string, watched: Watched, evalRunId: string | null): string | null {
  if (watched.resultLine === null || resultOf(watched, evalRunId) === null) return null;
  const path = join(out, 'result.json');
  write(path, watched.resultLine);
  return path;
}

/** Of a deployment that was refused nothing is left, not even the folder. */
export function dropIfEmpty(out: string): void {
  if (existsSync(out) && readdirSync(out).length === 0) rmdirSync(out);
}
