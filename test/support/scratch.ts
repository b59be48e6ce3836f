import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder for all tests of a file, gone when they are. Call it at the top of the file. */
export function scratchForFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'evaluator-test-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
