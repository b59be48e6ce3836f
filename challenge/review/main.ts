import { buffer } from 'node:stream/consumers';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseReviewConfig } from './config.ts';
import { startLocalReview } from './local.ts';
import { SqliteReviewLedger } from './sqlite.ts';

/** stdout: one line once it serves. stderr: the log. Configuration comes on stdin, until its end. */
const print = (stream: NodeJS.WriteStream, event: object): boolean =>
  stream.write(`${JSON.stringify(event)}\n`);

try {
  const config = parseReviewConfig(await buffer(process.stdin));
  const review = await startLocalReview(config, {
    now: Date.now,
    openLedger: (path) => new SqliteReviewLedger(path),
    collateral: async () => config.collateral,
    log: (event) => print(process.stderr, event),
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void review.close().then(() => process.exit(0)));
  }
  print(process.stdout, { event: 'ready', url: review.baseUrl, assignment_id: review.assignmentId });
} catch (error) {
  if (!(error instanceof EvaluatorError)) throw error;
  print(process.stderr, { event: 'refused', code: error.code, detail: error.message });
  process.exitCode = error.fault === 'input' ? 2 : 1;
}
