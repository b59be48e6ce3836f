/**
 * As challenge/review/main.ts, but it kills itself at one durable step. Arguments: the ledger's method, and
 * `before` or `after` its commit; `hang` as the method: its collateral never comes.
 */
import { buffer } from 'node:stream/consumers';
import { parseReviewConfig } from '../../challenge/review/config.ts';
import type { ReviewLedger } from '../../challenge/review/ledger.ts';
import { startLocalReview } from '../../challenge/review/local.ts';
import { SqliteReviewLedger } from '../../challenge/review/sqlite.ts';
import { isEvaluatorError } from '../../guest/errors.ts';

const [method = '', moment = ''] = process.argv.slice(2);
const die = () => process.kill(process.pid, 'SIGKILL');

function mortal(ledger: ReviewLedger): ReviewLedger {
  return new Proxy(ledger, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === method && moment === 'before') die();
        const value: unknown = member.apply(target, args);
        if (name === method && moment === 'after') die();
        return value;
      };
    },
  });
}

const config = parseReviewConfig(await buffer(process.stdin));
try {
  const { baseUrl, assignmentId } = await startLocalReview(config, {
    now: Date.now,
    openLedger: (path) => mortal(new SqliteReviewLedger(path)),
    collateral: () => (method === 'hang' ? new Promise(() => {}) : Promise.resolve(config.collateral)),
    log: () => {},
  });
  process.stdout.write(`${JSON.stringify({ event: 'ready', url: baseUrl, assignment_id: assignmentId })}\n`);
} catch (error) {
  if (!isEvaluatorError(error)) throw error;
  process.stderr.write(`refused: ${error.code}\n`);
  process.exitCode = 1;
}
