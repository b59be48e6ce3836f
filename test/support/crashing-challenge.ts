/**
 * As challenge/main.ts, but it kills itself at one durable step. Arguments: the ledger's method, `before` or
 * `after` its commit; and how far its clock is ahead, in ms.
 */
import { buffer } from 'node:stream/consumers';
import { parseConfig } from '../../challenge/config.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { startLocalChallenge } from '../../challenge/local.ts';
import { mortal, sayReady } from './mortal.ts';

const [method = '', moment = '', aheadMs = '0'] = process.argv.slice(2);
const config = parseConfig(await buffer(process.stdin));
await sayReady(async () => {
  const { baseUrl, evalRunId } = await startLocalChallenge(config, {
    now: () => Date.now() + Number(aheadMs),
    openLedger: (path) => mortal(new SqliteLedger(path), method, moment),
    collateral: async () => config.collateral,
    log: () => {},
  });
  return { url: baseUrl, eval_run_id: evalRunId };
});
