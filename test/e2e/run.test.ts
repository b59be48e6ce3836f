import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { beforeAll, describe, expect, it } from 'vitest';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { parseResult } from '../../guest/wire/result.ts';
import { zipDirectory } from '../../scripts/agent/zip-directory.ts';
import { type Ended, evaluator } from '../support/evaluator.ts';
import { scratchFolder } from '../support/scratch.ts';
import { writeAgent } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const ROOT = join(import.meta.dirname, '../..');
const TASKS = join(ROOT, 'task-cache');
const AGENT = join(ROOT, 'test/fixtures/agents/word-tally');
const folder = scratchFolder();
const cache = join(folder, 'cache');
const out = (name: string) => join(folder, name);
const read = (name: string, file: string) => readFileSync(join(out(name), file));
const lines = (text: string) => text.split('\n').filter(Boolean);

function run(name: string, agent: string, ...more: string[]): Promise<Ended> {
  const options = ['--cache', cache, '--solutions', TASKS, '--reps', '1', '--out', out(name), '--json'];
  return evaluator(['run', ...options, '--agent', agent, ...more], { EVALUATOR_TEST: 'a secret' });
}

function verify(name: string, changes: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const file = (option: string, fallback: string) => changes[option] ?? join(out(name), fallback);
  return evaluator([
    'verify',
    file('result', 'result.json'),
    ...['plan', 'plan-root', 'mechanism', 'allowlist', 'root', 'collateral'].flatMap((option) => {
      const extension = { mechanism: 'yaml', root: 'pem' }[option] ?? 'json';
      return [`--${option}`, file(option, `${option}.${extension}`)];
    }),
  ]);
}

const HALF = "printf '%s\\n' 91.44 42.16 13.81 2.27 0 0 0 0 > /app/answers.txt\n";
const NAMES = ['oracle', 'nop', 'folder', 'zip', 'half'] as const;
let ended: Record<(typeof NAMES)[number], Ended>;

removeTaskImages(['word-tally', 'unit-quiz']);
beforeAll(async () => {
  const baked = await evaluator(['bake', '--from', TASKS, '--only', 'word-tally,unit-quiz', '--out', cache]);
  expect(baked.code, baked.stderr).toBe(0);
  const zip = join(folder, 'agent.zip');
  writeFileSync(zip, await zipDirectory(AGENT));
  const half = await writeAgent(join(folder, 'half-agent'), HALF);
  // Two at a time: on a machine that is too busy a run aborts, as it should.
  const limit = pLimit(2);
  const all = await Promise.all([
    limit(() => run('oracle', 'oracle', '--reps', '2')),
    limit(() => run('nop', 'nop', '--tasks', 'unit-quiz')),
    limit(() => run('folder', AGENT)),
    limit(() => run('zip', zip, '--tasks', 'word-tally')),
    limit(() => run('half', half, '--tasks', 'unit-quiz', '--policy', 'mean', '--reps', '2')),
  ]);
  ended = Object.fromEntries(NAMES.map((name, i) => [name, all[i]])) as typeof ended;
}, 300_000);

const summaryOf = (name: keyof typeof ended) => {
  expect(ended[name].code, ended[name].stderr).toBe(0);
  return JSON.parse(ended[name].stdout);
};

describe('the oracle on two tasks', () => {
  it('is accepted, with one object of the documented shape on stdout', () => {
    const summary = summaryOf('oracle');
    expect(lines(ended.oracle.stdout)).toHaveLength(1);
    const rep = {
      outcome: 'completed',
      failure: null,
      reward: 1,
      wall_ms: expect.any(Number),
      cpu_ms: expect.any(Number),
      memory_peak_bytes: expect.any(Number),
      overhead_ms: expect.any(Number),
    };
    const task = (task_id: string) => ({ task_id, verdict: 'PASS', score: 1, reps: [rep, rep] });
    expect(summary).toEqual({
      accepted: true,
      reason_code: null,
      score: 1,
      eligible: false,
      ineligible_because: 'calibration',
      cut: null,
      tasks: [task('unit-quiz'), task('word-tally')],
      result: JSON.parse(read('oracle', 'result.json').toString()),
    });
  });

  it('leaves what the README lists, and no token', () => {
    expect(readdirSync(out('oracle')).sort()).toEqual([
      'allowlist.json',
      'app-compose.json',
      'collateral.json',
      'journal.jsonl',
      'mechanism.yaml',
      'plan-root.json',
      'plan.json',
      'receipt.json',
      'reps',
      'result.json',
      'root.pem',
    ]);
    expect(readdirSync(join(out('oracle'), 'reps'), { recursive: true }).map(String)).toEqual(
      expect.arrayContaining([
        'unit-quiz/0/agent.stdout',
        'unit-quiz/1/rep.json',
        'word-tally/1/tests.output',
      ]),
    );
  });

  it('has a RESULT and a receipt in exact bytes', () => {
    const bytes = read('oracle', 'result.json');
    expect(parseResult(bytes).score_record.r).toBe(2);
    const receipt = read('oracle', 'receipt.json');
    expect(encodeCanonical(JSON.parse(receipt.toString())).equals(receipt)).toBe(true);
    expect(lines(ended.oracle.stderr).map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ event: 'receipt', receipt: JSON.parse(receipt.toString()) }),
    );
  });

  it('says JSON lines on stderr, the same as in the journal', () => {
    const said = lines(ended.oracle.stderr).map((line) => JSON.parse(line) as { event: string });
    expect(new Set(said.map(({ event }) => event))).toEqual(
      new Set(['stage', 'rep', 'delivery', 'receipt', 'ended', 'log']),
    );
    expect(lines(read('oracle', 'journal.jsonl').toString())).toEqual(lines(ended.oracle.stderr));
    expect(ended.oracle.stderr).not.toContain('a secret');
  });

  it('is verified from its files alone', async () => {
    const verified = await verify('oracle');
    expect([verified.code, lines(verified.stdout).at(-1)]).toEqual([0, 'verified']);
  });

  it('is not verified under the root of another machine, nor with another figure', async () => {
    const foreign = await verify('oracle', { root: join(out('nop'), 'root.pem') });
    expect([foreign.code, foreign.stdout]).toEqual([3, expect.stringContaining('root_not_trusted')]);

    const changed = join(folder, 'changed.json');
    const text = read('oracle', 'result.json').toString();
    writeFileSync(changed, text.replace('"cpu_ms":', '"cpu_ms":1'));
    const { code, stdout } = await verify('oracle', { result: changed });
    expect([code, stdout]).toEqual([3, expect.stringContaining('scores_digest_mismatch')]);
  });
});

describe('other agents', () => {
  it('nop scores 0, and is accepted all the same', async () => {
    const summary = summaryOf('nop');
    expect([summary.accepted, summary.score, summary.tasks[0].verdict]).toEqual([true, 0, 'FAIL']);
    expect((await verify('nop')).code).toBe(0);
  });

  it('a folder and its ZIP are one agent, which solves what it can', () => {
    const [fromFolder, fromZip] = [summaryOf('folder'), summaryOf('zip')];
    expect(fromFolder.result.agent_hash).toBe(fromZip.result.agent_hash);
    expect([fromFolder.score, fromZip.score]).toEqual([0.5, 1]);
    expect(read('folder', 'reps/word-tally/0/agent.stdout').toString()).toMatch(/^\d+ words\n$/);
  });

  it('a fraction counts under policy mean', () => {
    const summary = summaryOf('half');
    expect([summary.score, summary.tasks[0].verdict]).toEqual([0.5, 'FAIL']);
  });
});
