import { buffer } from 'node:stream/consumers';
import { EvaluatorError } from '../guest/errors.ts';
import { parseConfig } from './config.ts';
import { SqliteLedger } from './ledger/sqlite.ts';
import { startLocalChallenge } from './local.ts';

/** stdout: one line once it serves. stderr: the log. Configuration comes on stdin, until its end. */
const print = (stream: NodeJS.WriteStream, event: object): boolean =>
  stream.write(`${JSON.stringify(event)}\n`);

try {
  const config = parseConfig(await buffer(process.stdin));
  const challenge = await startLocalChallenge(config, {
    now: Date.now,
    openLedger: (path) => new SqliteLedger(path),
    collateral: async () => config.collateral,
    log: (event) => print(process.stderr, event),
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void challenge.close().then(() => process.exit(0)));
  }
  print(process.stdout, {
    event: 'ready',
    url: challenge.baseUrl,
    key_release_url: challenge.keyReleaseUrl,
    eval_run_id: challenge.evalRunId,
  });
} catch (error) {
  if (!(error instanceof EvaluatorError)) throw error;
  print(process.stderr, { event: 'refused', code: error.code, detail: error.message });
  process.exitCode = error.fault === 'input' ? 2 : 1;
}
