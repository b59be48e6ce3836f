import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll } from 'vitest';

/** What bakes have built of these tasks, as the engine names it. */
export function taskImages(taskIds: readonly string[]): string[] {
  const named = taskIds.map((id) => `--filter=reference=cvm-evaluator/task-${id}`);
  const list = ['images', '--format', '{{.Repository}}:{{.Tag}}', ...named];
  return execFileSync('docker', list, { encoding: 'utf8' }).split('\n').filter(Boolean);
}

/** Removes the images of these tasks that are new when the file's tests are over. Call it at the top of the file. */
export function removeTaskImages(taskIds: readonly string[]): void {
  let before: string[] = [];
  beforeAll(() => {
    before = taskImages(taskIds);
  });
  afterAll(() => {
    const made = taskImages(taskIds).filter((name) => !before.includes(name));
    if (made.length > 0) execFileSync('docker', ['rmi', '--force', ...made], { stdio: 'ignore' });
  });
}
