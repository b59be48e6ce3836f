import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeF64be } from '../../../guest/wire/f64.ts';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';

const MIB = 1024 * 1024;
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

const reward = (rep: RepRecord | undefined) =>
  rep?.value && 'reward_f64be' in rep.value ? decodeF64be(rep.value.reward_f64be) : null;

describe.each(KINDS)('%s', (kind, as) => {
  describe('an agent within its budgets', () => {
    it('is judged by its tests', async () => {
      const [right] = await trial.run({ ...as, script: 'echo right > /app/answer' });
      expect([right?.outcome, reward(right), right?.failure]).toEqual(['completed', 1, null]);
      const [wrong] = await trial.run({ ...as, script: 'echo wrong > /app/answer' });
      expect([wrong?.outcome, reward(wrong)]).toEqual(['completed', 0]);
    });

    it.each(kind === 'container' ? [137, 124, 126, 143, 1] : [137])(
      'may exit with %i: the code proves nothing',
      async (code) => {
        const [rep] = await trial.run({ ...as, script: `echo right > /app/answer; exit ${code}` });
        expect([rep?.outcome, reward(rep)]).toEqual(['completed', 1]);
      },
    );
  });

  describe('CPU', () => {
    it('ends a full-core runaway and charges what it used', async () => {
      const [rep] = await trial.run({
        ...as,
        script: 'while :; do :; done',
        limits: { cpu_budget_ms: 1000 },
      });
      expect(rep?.failure).toBe('cpu_budget');
      expect(rep?.cpu_ms).toBeGreaterThanOrEqual(1000);
      expect(rep?.cpu_ms).toBeLessThan(3000);
    });

    it('counts processes that have ended, and four busy ones under one CPU', async () => {
      const children =
        'for i in 1 2 3 4 5 6; do (n=0; while [ $n -lt 120000 ]; do n=$((n+1)); done); done; echo right > answer';
      const [ended] = await trial.run({ ...as, script: children, limits: { cpu_budget_ms: 400 } });
      expect(ended?.failure).toBe('cpu_budget');
      const four = 'for i in 1 2 3 4; do while :; do :; done & done; wait';
      const [busy] = await trial.run({ ...as, script: four, limits: { cpu_budget_ms: 1000 } });
      expect(busy?.failure).toBe('cpu_budget');
    });

    it('judges a rep that ends by itself by its final reading', async () => {
      // Eats the whole budget between two polls of the watch, then ends well.
      const script = 'n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; echo right > /app/answer';
      const [rep] = await trial.run({ ...as, script, limits: { cpu_budget_ms: 50 } });
      expect(rep?.failure).toBe('cpu_budget');
    });
  });

  describe('wall', () => {
    it('ends a sleeper', async () => {
      const [rep] = await trial.run({
        ...as,
        script: 'trap "" TERM; sleep 600 & wait',
        limits: { wall_budget_ms: 1500 },
      });
      expect(rep?.failure).toBe('wall_backstop');
      expect(rep?.wall_ms).toBeGreaterThanOrEqual(1500);
      expect(rep?.wall_ms).toBeLessThan(6000);
    });
  });

  describe('memory', () => {
    const eat = 'python3 -c "x=bytearray(400*1024*1024)"';

    it('is memory_limit when the agent itself is killed for it', async () => {
      const [rep] = await trial.run({ ...as, script: `exec ${eat}`, limits: { memory_bytes: 64 * MIB } });
      expect([rep?.failure, (rep?.oom_kills ?? 0) > 0]).toEqual(['memory_limit', true]);
    });

    it('is only counted when a child is killed and the agent goes on', async () => {
      const [rep] = await trial.run({
        ...as,
        script: `${eat}; echo right > /app/answer; exit 0`,
        limits: { memory_bytes: 64 * MIB },
      });
      expect([rep?.outcome, reward(rep), (rep?.oom_kills ?? 0) > 0]).toEqual(['completed', 1, true]);
    });

    it('fails an agent that fakes 137 after an OOM kill', async () => {
      const [rep] = await trial.run({
        ...as,
        script: `${eat}; exit 137`,
        limits: { memory_bytes: 64 * MIB },
      });
      expect(rep?.failure).toBe('memory_limit');
    });
  });

  describe('start', () => {
    it('is agent_start when the command is not there', async () => {
      const [rep] = await trial.run({ ...as, script: '', command: ['/agent/absent'] });
      expect([rep?.outcome, rep?.failure]).toEqual(['failed', 'agent_start']);
    });
  });
});
