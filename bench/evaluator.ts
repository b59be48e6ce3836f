import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..');

export interface BenchRun {
  wallMs: number;
  exitCode: number | null;
  events: Record<string, unknown>[];
}

/** Runs the command line as a whole process and reads the journal that it leaves. */
export function evaluator(args: readonly string[]): BenchRun {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const out = join(folder, 'out');
  const start = performance.now();
  const { status } = spawnSync(join(ROOT, 'scripts/evaluator'), [...args, '--out', out], { stdio: 'ignore' });
  const wallMs = performance.now() - start;
  try {
    const events = readFileSync(join(out, 'journal.jsonl'), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    return { wallMs, exitCode: status, events };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
