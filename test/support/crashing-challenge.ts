/**
 * As challenge/main.ts, but it kills itself at one durable step. Arguments: the ledger's method, `before` or
 * `after` its commit; and how far its clock is ahead, in ms.
 */
import { buffer } from 'node:stream/consumers';
import { parseConfig } from '../../challenge/config.ts';
import type { Ledger } from '../../challenge/ledger/ledger.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { startLocalChallenge } from '../../challenge/local.ts';
import { isEvaluatorError } from '../../guest/errors.ts';

const [method = '', moment = '', aheadMs = '0'] = process.argv.slice(2);
const die = () => process.kill(process.pid, 'SIGKILL');

function mortal(ledger: Ledger): Ledger {
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

const config = parseConfig(await buffer(process.stdin));
try {
  const challenge = await startLocalChallenge(config, {
    now: () => Date.now() + Number(aheadMs),
    openLedger: (path) => mortal(new SqliteLedger(path)),
    collateral: async () => config.collateral,
    log: () => {},
  });
  const { baseUrl, evalRunId } = challenge;
  process.stdout.write(`${JSON.stringify({ event: 'ready', url: baseUrl, eval_run_id: evalRunId })}\n`);
} catch (error) {
  if (!isEvaluatorError(error)) throw error;
  process.stderr.write(`refused: ${error.code}\n`);
  process.exitCode = 1;
}
