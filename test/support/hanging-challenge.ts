/** As challenge/main.ts, but its collateral never comes: a receipt is kept and never judged. */
import { buffer } from 'node:stream/consumers';
import { parseConfig } from '../../challenge/config.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { startLocalChallenge } from '../../challenge/local.ts';

const config = parseConfig(await buffer(process.stdin));
const challenge = await startLocalChallenge(config, {
  now: Date.now,
  openLedger: (path) => new SqliteLedger(path),
  collateral: () => new Promise(() => {}),
  log: () => {},
});
process.stdout.write(
  `${JSON.stringify({ event: 'ready', url: challenge.baseUrl, eval_run_id: challenge.evalRunId })}\n`,
);
