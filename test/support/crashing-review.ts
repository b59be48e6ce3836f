/**
 * As challenge/review/main.ts, but it kills itself at one durable step. Arguments: the ledger's method, and
 * `before` or `after` its commit; `hang` as the method: its collateral never comes.
 */
import { buffer } from 'node:stream/consumers';
import { parseReviewConfig } from '../../challenge/review/config.ts';
import { startLocalReview } from '../../challenge/review/local.ts';
import { SqliteReviewLedger } from '../../challenge/review/sqlite.ts';
import { mortal, sayReady } from './mortal.ts';

const [method = '', moment = ''] = process.argv.slice(2);
const config = parseReviewConfig(await buffer(process.stdin));
await sayReady(async () => {
  const { baseUrl, assignmentId } = await startLocalReview(config, {
    now: Date.now,
    openLedger: (path) => mortal(new SqliteReviewLedger(path), method, moment),
    collateral: () => (method === 'hang' ? new Promise(() => {}) : Promise.resolve(config.collateral)),
    log: () => {},
  });
  return { url: baseUrl, assignment_id: assignmentId };
});
