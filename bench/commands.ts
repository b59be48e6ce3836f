import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './evaluator.ts';
import { spread } from './statistics.ts';

/** Wall time of whole commands on a warm machine: the demo, and `verify` of the RESULT it leaves. */
const RUNS = 10;

function wallMs(command: string, args: readonly string[]): number {
  const start = performance.now();
  const { status, stderr } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return performance.now() - start;
}

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const out = join(folder, 'out');
try {
  console.log(`demo, whole command: ${Math.round(wallMs(join(ROOT, 'scripts/demo'), ['--out', out]))} ms`);
  const file = (name: string) => join(out, name);
  const verify = () =>
    wallMs(join(ROOT, 'scripts/evaluator'), [
      'verify',
      file('result.json'),
      '--plan',
      file('plan.json'),
      '--plan-root',
      file('plan-root.json'),
      '--mechanism',
      file('mechanism.yaml'),
      '--allowlist',
      file('allowlist.json'),
      '--root',
      file('root.pem'),
      '--collateral',
      file('collateral.json'),
    ]);
  verify();
  console.log(
    `verify, whole process, ${RUNS} runs: p50 / p95 / max ms ${spread(Array.from({ length: RUNS }, verify))}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
