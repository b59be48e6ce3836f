import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { childrenOf } from '../support/evaluator.ts';
import { docker, expectNothingLeft, siblingsOf } from '../support/guest-container.ts';
import { imageRuns } from '../support/image-runs.ts';

const WIDER = join(import.meta.dirname, '../support/wider-run.ts');
const { place, start, running, first } = imageRuns();
const read = (name: string, file: string) => readFileSync(join(place(name), file), 'utf8');
const journal = (name: string) =>
  read(name, 'journal.jsonl')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe.concurrent('a guest in a container that is ended', () => {
  it('by SIGTERM of the run takes its siblings down', async () => {
    const run = await running('term');
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    await expectNothingLeft(run.guest, run.desk);
    expect(readdirSync(run.scratch)).toEqual([]);
  });

  it('by SIGKILL of its container is swept after by the run', async () => {
    const run = await running('killed');
    await docker('kill', run.guest);
    const { code, stdout } = await run.ended;
    expect([code, JSON.parse(stdout).result]).toEqual([5, null]);
    await expectNothingLeft(run.guest, run.desk);
  });

  it('by SIGKILL of the run is swept after by the reaper, and every part ends', async () => {
    const run = await running('orphaned');
    const parts = childrenOf(run.child.pid ?? 0).map(({ pid }) => pid);
    expect(parts).toHaveLength(3);
    run.child.kill('SIGKILL');
    await run.ended;
    while (parts.some((pid) => existsSync(`/proc/${pid}/exe`))) await sleep(50);
    await expectNothingLeft(run.guest, run.desk);
  });
});

describe('a compose with one mount more', () => {
  it('is not allowlisted for the challenge; its guest sweeps what one killed with its desk has left', async () => {
    const dead = await running('dead');
    // Stopped, the run cannot clean up any more; nobody is left who could.
    dead.child.kill('SIGSTOP');
    for (const { pid, command } of childrenOf(dead.child.pid ?? 0))
      if (command.includes('reaper')) process.kill(pid, 'SIGKILL');
    await docker('kill', dead.guest);
    dead.child.kill('SIGKILL');
    // Gone by another's hand: what it has left is then the next guest's to sweep, not the next desk's.
    await docker('rm', dead.guest);
    const left = await siblingsOf(dead.guest);
    expect(left.length).toBeGreaterThan(2);

    const wider = start('wider', [first().tag], 'solver', WIDER);
    const { code, stdout, stderr } = await wider.ended;
    expect([code, JSON.parse(stdout)], stderr).toEqual([
      3,
      expect.objectContaining({ reason_code: 'measurement_not_allowed', result: null }),
    ]);
    expect(read('wider', 'app-compose.json')).toContain('/:/host:ro');
    const said = journal('wider');
    expect(said).toContainEqual(expect.objectContaining({ event: 'swept' }));
    await expectNothingLeft(dead.guest, dead.desk);
    expect(said.filter(({ event }) => event === 'error')).toEqual([
      expect.objectContaining({ stage: 'unlock', code: 'measurement_not_allowed' }),
    ]);
    const challenge = said
      .filter(({ process }) => process === 'challenge')
      .map(({ line }) => JSON.parse(line));
    expect(challenge.map(({ exchange, reason_code }) => [exchange, reason_code])).toEqual([
      ['release', 'measurement_not_allowed'],
    ]);
  });
});
