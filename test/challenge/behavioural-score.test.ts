import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  behaviouralScore,
  type Confusion,
  clampedMcc,
  confusionOf,
} from '../../challenge/behavioural-score.ts';
import { type LabelStore, NO_LABELS, readLabels } from '../../challenge/labels.ts';
import { openCache } from '../../guest/tasks/cache.ts';
import type { Label } from '../../guest/tasks/label.ts';
import { decodeF64be, encodeF64be } from '../../guest/wire/f64.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { encodeResult } from '../../guest/wire/result.ts';
import type { BehaviouralVerdict, ScoreRecord } from '../../guest/wire/score-record.ts';
import { labelledTask, PLANTED_TASK } from '../support/audit-tasks.ts';
import { type TestChallenge, testChallenge } from '../support/challenge-in-process.ts';
import { writeCache } from '../support/plain-task.ts';
import { scratchFolder } from '../support/scratch.ts';
import { GOLDEN_KEY, writeSealedCache } from '../support/sealed-cache.ts';
import { codeOf, rejectionCode } from '../support/throws.ts';
import { resultFor, scoreRecord, testPlatform } from '../support/valid-result.ts';

const { mcc } = JSON.parse(readFileSync(new URL('../vectors/scores.json', import.meta.url), 'utf8')) as {
  mcc: (Confusion & { score: number })[];
};

describe('clampedMcc', () => {
  it.each(mcc)('is $score of $tp, $tn, $fp, $fn', ({ score, ...counts }) => {
    expect(clampedMcc(counts)).toBeCloseTo(score, 6);
  });

  it('is exactly 1 for whoever is always right, and never outside of [0,1]', () => {
    for (let tp = 1; tp < 40; tp++)
      for (let tn = 1; tn < 40; tn++) expect(clampedMcc({ tp, tn, fp: 0, fn: 0 })).toBe(1);
  });

  it('never falls when a task goes from wrong to right: no verdict never beats one', () => {
    const sizes = [0, 1, 2, 5, 9];
    for (const tp of sizes)
      for (const tn of sizes)
        for (const fp of sizes)
          for (const fn of sizes) {
            const before = clampedMcc({ tp, tn, fp, fn });
            if (fn > 0) expect(clampedMcc({ tp: tp + 1, tn, fp, fn: fn - 1 })).toBeGreaterThanOrEqual(before);
            if (fp > 0) expect(clampedMcc({ tp, tn: tn + 1, fp: fp - 1, fn })).toBeGreaterThanOrEqual(before);
          }
  });
});

describe('confusionOf', () => {
  it.each<[Label, BehaviouralVerdict | null, keyof Confusion]>([
    ['malicious', 'BLOCK', 'tp'],
    ['malicious', 'WARN', 'tp'],
    ['malicious', 'ALLOW', 'fn'],
    ['malicious', null, 'fn'],
    ['safe', 'ALLOW', 'tn'],
    ['safe', 'WARN', 'fp'],
    ['safe', 'BLOCK', 'fp'],
    ['safe', null, 'fp'],
  ])('%s judged %s is %s', (label, verdict, cell) => {
    expect(confusionOf([{ verdict }], [label])).toEqual({ tp: 0, tn: 0, fp: 0, fn: 0, [cell]: 1 });
  });

  it('leaves no task out', () => {
    expect(confusionOf([], ['safe', 'malicious'])).toEqual({ tp: 0, tn: 0, fp: 1, fn: 1 });
  });
});

const TASKS = { bad: labelledTask('malicious'), good: labelledTask('safe'), repo: PLANTED_TASK };
const planOf = (tasks: [string, string][]) =>
  ({ tasks: tasks.map(([task_id, task_digest]) => ({ task_id, task_digest })) }) as Pick<EvalPlan, 'tasks'>;

/** The skills labels of a cache, and a plan of both of its skills. */
async function fromCache(
  folder: string,
  goldenKey: Buffer | null,
): Promise<[LabelStore, Pick<EvalPlan, 'tasks'>]> {
  const cache = await openCache(folder);
  const labels = await readLabels(folder, cache.cacheDigest, 'skills', goldenKey);
  return [labels, planOf(['bad', 'good'].map((name) => [name, cache.task(name).taskDigest]))];
}

describe('readLabels', () => {
  it('opens the labels of a sealed cache with the golden key, and reads those of a plain one', async () => {
    const [sealed, plain] = [scratchFolder(), scratchFolder()];
    await writeSealedCache(sealed, TASKS);
    await writeCache(plain, TASKS);
    for (const [folder, key] of [
      [sealed, GOLDEN_KEY],
      [plain, null],
    ] as const) {
      const [labels, plan] = await fromCache(folder, key);
      expect(labels.labelsOf(plan)).toEqual(['malicious', 'safe']);
      expect(behaviouralScore(plan, [{ verdict: 'WARN' }, { verdict: 'ALLOW' }], labels)).toBe(
        encodeF64be(1),
      );
      expect(decodeF64be(behaviouralScore(plan, [{ verdict: 'WARN' }, { verdict: null }], labels))).toBe(0);
    }
  });

  it('knows no label of another track, nor of a task with the same name and another digest', async () => {
    const folder = scratchFolder();
    await writeCache(folder, TASKS);
    const [labels] = await fromCache(folder, null);
    const repo = (await openCache(folder)).task('repo').taskDigest;
    for (const plan of [planOf([['repo', repo]]), planOf([['bad', 'ab'.repeat(32)]])])
      expect(codeOf(() => labels.labelsOf(plan))).toBe('score_not_computable');
    expect(codeOf(() => NO_LABELS.labelsOf(planOf([['bad', 'ab'.repeat(32)]])))).toBe('score_not_computable');
  });

  it('refuses another cache, another key, and a label that is none', async () => {
    const folder = scratchFolder();
    await writeSealedCache(folder, TASKS);
    const { cacheDigest } = await openCache(folder);
    expect(await rejectionCode(readLabels(folder, 'ab'.repeat(32), 'skills', GOLDEN_KEY))).toBe(
      'cache_digest_mismatch',
    );
    expect(await rejectionCode(readLabels(folder, cacheDigest, 'skills', Buffer.alloc(32)))).toBe(
      'sealed_unopenable',
    );
    const odd = join(scratchFolder(), 'odd');
    await writeCache(odd, {
      bad: { ...labelledTask('safe'), 'tests/ground_truth.json': '{"class":"safe"}' },
    });
    const digest = (await openCache(odd)).cacheDigest;
    expect(await rejectionCode(readLabels(odd, digest, 'skills', null))).toBe('ground_truth_invalid');
  });
});

describe('a behavioural RESULT', () => {
  let challenge: TestChallenge;
  afterEach(() => challenge.close());

  const order: Partial<EvalPlan> = { track: 'skills', policy: null };
  const unpinned = (tasks: EvalPlan['tasks']) => tasks.map((task) => ({ ...task, budgets: null }));

  /** Every rep of the first task says BLOCK, of the second ALLOW. */
  function recordOf(plan: EvalPlan): ScoreRecord {
    const record = scoreRecord(plan);
    const limits = { cpu_budget_ms: 8000, wall_budget_ms: 24_000 };
    const tasks = record.tasks.map((task, index) => {
      const verdict = index === 0 ? ('BLOCK' as const) : ('ALLOW' as const);
      const reps = task.reps.map((rep) => ({ ...rep, value: { verdict }, verifier_mode: null }));
      return { ...task, limits: { ...task.limits, ...limits }, verdict, score_f64be: null, reps };
    });
    return { ...record, tasks, final: { score_f64be: null, passed_tasks: null, total_tasks: 2 } };
  }

  async function posted(labels: LabelStore): Promise<void> {
    const platform = await testPlatform();
    const { plan } = await testChallenge({}, platform).then(async (one) => {
      await one.close();
      return one;
    });
    challenge = await testChallenge({ labels }, platform, { ...order, tasks: unpinned(plan.tasks) });
    const body = encodeResult(resultFor(platform, challenge.plan, recordOf(challenge.plan)));
    expect((await challenge.post(body)).status).toBe(202);
  }

  it('is accepted with the figure of whoever has the labels', async () => {
    await posted({ labelsOf: () => ['malicious', 'safe'] });
    expect(await challenge.state()).toMatchObject({ state: 'accepted', score_f64be: encodeF64be(1) });
  });

  it('scores 0 where every label is the other one', async () => {
    await posted({ labelsOf: () => ['safe', 'malicious'] });
    expect(await challenge.state()).toMatchObject({ state: 'accepted', score_f64be: encodeF64be(0) });
  });

  it('waits for labels that are not at hand', async () => {
    await posted(NO_LABELS);
    expect(await challenge.state()).toMatchObject({ state: 'parked', reason_code: 'score_not_computable' });
  });
});
