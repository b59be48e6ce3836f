import { randomBytes } from 'node:crypto';
import { openSealed, sealTests } from '../guest/tasks/seal.ts';
import { SALT_BYTES, SALT_PATH } from '../guest/tasks/sealed-tar.ts';
import { digestFiles, taskDigest } from '../guest/tasks/source-digest.ts';
import { percentile } from './statistics.ts';

/** Opening a sealed blob of 100 MB in memory, the task digest recomputed. */
const FILES = 20;
const FILE_BYTES = 5_000_000;
const RUNS = 10;

const file = (path: string, size: number) => ({ path, bytes: randomBytes(size), executable: false });
const tests = [
  file(SALT_PATH, SALT_BYTES),
  ...Array.from({ length: FILES }, (_, i) => file(`tests/data-${String(i).padStart(2, '0')}`, FILE_BYTES)),
];
const digest = taskDigest(digestFiles(tests));
const context = { cacheId: randomBytes(32).toString('hex'), taskDigest: digest, taskId: 'bench' };
const key = randomBytes(32);
const blob = await sealTests(tests, key, context, randomBytes(12));
const rates: number[] = [];
for (let i = 0; i < RUNS; i++) {
  const start = performance.now();
  const opened = await openSealed(blob, key, context);
  if (taskDigest(digestFiles(opened)) !== digest) throw new Error('opened files have another digest');
  rates.push((FILES * FILE_BYTES) / 1e6 / ((performance.now() - start) / 1000));
}
console.log(
  `unseal with digest, ${(FILES * FILE_BYTES) / 1e6} MB of tests, ${RUNS} runs: p50 ${Math.round(percentile(rates, 0.5))} MB/s, slowest ${Math.round(Math.min(...rates))} MB/s`,
);
