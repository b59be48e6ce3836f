/** As challenge/main.ts, but its collateral never comes: a receipt is kept and never judged. */
import { buffer } from 'node:stream/consumers';
import { parseConfig } from '../../challenge/config.ts';
import { startLocalChallenge } from '../../challenge/local.ts';

const config = parseConfig(await buffer(process.stdin));
const challenge = await startLocalChallenge(config, {
  now: Date.now,
  collateral: () => new Promise(() => {}),
  log: () => {},
});
process.stdout.write(
  `${JSON.stringify({ event: 'ready', url: challenge.baseUrl, eval_run_id: challenge.evalRunId })}\n`,
);
