import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../guest/engine/port.ts';
import type { TaskFile } from '../../../guest/tasks/types.ts';
import { containersOf, judge, judged, testOutputOf } from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
import { buildPythonToolchain } from '../../support/toolchains.ts';
import { KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';

const CTRF = { kind: 'ctrf', passed: null } as const;
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial({ toolchain: buildPythonToolchain });
});
afterAll(() => trial.close());

/** As published test scripts go: tools from the internet, pytest with a report, a reward from its exit code. */
const PYTEST = `#!/bin/bash
apt-get update && apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;

function outputsTest(...lines: string[]): TaskFile {
  return { path: 'tests/test_outputs.py', bytes: Buffer.from(`${lines.join('\n')}\n`), executable: false };
}

const ANSWER = outputsTest(
  'def test_answer():',
  "    assert open('/app/answer').read().strip() == 'right'",
  'def test_true():',
  '    assert True',
);

describe.concurrent('tests with a proof that they ran', () => {
  it('pass and fail by the answer', async () => {
    const task = { test: PYTEST, tests: [ANSWER], evidence: CTRF };
    expect(await judge(trial, { ...task, script: 'echo right > /app/answer' })).toBe('reward 1');
    expect(await judge(trial, { ...task, script: 'echo wrong > /app/answer' })).toBe('reward 0');
  });

  it.each(KINDS)('that cannot be collected are a wrong answer, without a control', async (_, as) => {
    const tests = [
      outputsTest('import sys', "sys.path.insert(0, '/app')", 'from solution import f', 'def test_f(): f()'),
    ];
    const script = 'echo "raise SystemExit" > /app/solution.py';
    const task = { ...as, script, test: PYTEST, tests, evidence: CTRF };
    // A control has no solution either: with its proof missing too, the run would end.
    expect(await judge(trial, task)).toBe('reward 0');
  });

  it.each([
    ['as many as the task has', 2, 'reward 1'],
    ['fewer than the task has', 3, 'reward 0'],
  ])('count when they pass: %s', async (_, passed, expected) => {
    const evidence = { kind: 'ctrf', passed } as const;
    const script = 'echo right > /app/answer';
    expect(await judge(trial, { script, test: PYTEST, tests: [ANSWER], evidence })).toBe(expected);
  });

  it.each([
    ['a conftest in WORKDIR', 'conftest.py'],
    ['a conftest above /tests', '../conftest.py'],
    ['a sitecustomize in WORKDIR', 'sitecustomize.py'],
    ['a pytest in WORKDIR', 'pytest.py'],
    ['an ini file in WORKDIR', 'pytest.ini'],
  ])('are not configured by %s', async (_, file) => {
    const script = `cat > ${file} <<'EOF'
[pytest]
addopts = --collect-only
EOF
      case ${file} in *.py) printf 'import os\\nopen("/logs/verifier/reward.txt", "w").write("1")\\nos._exit(0)\\n' > ${file};; esac
      printf 'import os; os._exit(0)' > /usr/local/lib/python3.11/dist-packages/sitecustomize.py
      echo wrong > /app/answer`;
    expect(await judge(trial, { script, test: PYTEST, tests: [ANSWER], evidence: CTRF })).toBe('reward 0');
  });
});

describe.concurrent('tests without a proof', () => {
  it("are the agent's fault when a control shows one", async () => {
    const test = '#!/bin/bash\n[ -e /app/spoiled ] || echo 1 > /logs/verifier/reward.txt\n';
    expect(await judge(trial, { script: 'touch /app/spoiled', test })).toBe('reward 0');
  });

  it('end the run when the control shows none either', async () => {
    const run = trial.run({ script: 'true', test: '#!/bin/bash\nexit 0\n' });
    await expect(run).rejects.toMatchObject({ code: 'verifier_broken' });
    const report = trial.run({
      script: 'true',
      test: '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
      evidence: CTRF,
    });
    await expect(report).rejects.toMatchObject({ code: 'verifier_broken' });
  });

  it('end the run with what the front does not serve', async () => {
    const test = '#!/bin/bash\napt-get install -y ghostscript && echo 1 > /logs/verifier/reward.txt\n';
    const run = trial.run({ script: 'true', test });
    await expect(run).rejects.toMatchObject({ code: 'verifier_unserved' });
    await expect(run).rejects.toThrow(/front_unserved_apt ghostscript/);
  });
});

describe.concurrent('a second life', () => {
  it("ends at the verifier's timeout: completed, reward 0", async () => {
    const test = '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\nsleep 600\n';
    const [rep] = await trial.run({ script: 'true', test, verifierTimeoutMs: 2000 });
    expect([rep?.outcome, judged(rep)]).toEqual(['completed', 'reward 0']);
  });

  it("has the environment of the image and ours, WORKDIR, no input, and nothing of the agent's processes", async () => {
    const test = `#!/bin/bash
env | sort; pwd; id -u; cat; ls /dev/shm; ls -d /.evaluator-* 2>/dev/null; echo 1 > /logs/verifier/reward.txt
`;
    const script = 'export EVIL=1 PATH=/app:$PATH; touch /dev/shm/left; cd /; sleep 1000 &';
    await trial.run({ script, test, taskId: 'environment' });
    const lines = testOutputOf(trial, 'environment')
      .split('\n')
      .filter((line) => !/^(_|SHLVL|OLDPWD|HOSTNAME)=/.test(line));
    expect(lines.filter((line) => line.includes('='))).toEqual(
      expect.arrayContaining([
        'HOME=/root',
        'PWD=/app',
        expect.stringMatching(
          /^PATH=\/opt\/evaluator\/front:\/opt\/evaluator\/front\/shell:\/usr\/local\/sbin:/,
        ),
      ]),
    );
    expect(lines.join('\n')).not.toMatch(/EVIL|TASK_|AGENT_|left|evaluator-/);
    expect(lines.slice(-3)).toEqual(['/app', '0', '']);
  });

  it('follows on every agent of the task: no container is started again while one still runs', async () => {
    const { engine: recording, calls } = recordCalls(trial.context.engine);
    let turn = 0;
    const engine: Engine = {
      ...trial.context.engine,
      start: recording.start,
      putArchive: recording.putArchive,
      createExec: (id, spec) => recording.createExec(id, { ...spec, env: [...spec.env, `TURN=${turn++}`] }),
    };
    const begin = performance.now();
    const reps = await trial.run({
      script: 'sleep $((TURN * 4)); echo right > /app/answer',
      reps: 2,
      engine,
      taskId: 'turns',
    });
    expect(reps.map(judged)).toEqual(['reward 1', 'reward 1']);
    expect(new Set(reps.map((rep) => rep.container_id)).size).toBe(2);
    const longest = Math.max(...reps.map((rep) => rep.wall_ms));
    expect(longest).toBeGreaterThan(4000);
    // Of each container the first start and upload are its agent's, the second ones its tests'.
    const again = calls.filter(
      (call, at) => calls.findIndex(({ name, of }) => name === call.name && of === call.of) < at,
    );
    expect(again.map(({ name }) => name).sort()).toEqual(['putArchive', 'putArchive', 'start', 'start']);
    for (const { atMs } of again) expect(atMs - begin).toBeGreaterThan(longest);
  });

  it('has no network, where the agent had one', async () => {
    const { context, session } = trial;
    await context.engine.createNetwork(`cvm-eval-${session.id}`, { 'io.cvm-evaluator.session': session.id });
    const test =
      '#!/bin/bash\nls /sys/class/net > /logs/verifier/net; cat /logs/verifier/net\necho 1 > /logs/verifier/reward.txt\n';
    const script = 'ls /sys/class/net';
    await trial.run({ script, test, network: 'open', taskId: 'online' });
    const done = trial.finished.find(({ taskId }) => taskId === 'online');
    expect((await done?.first.output())?.stdout.head.toString()).toMatch(/eth0/);
    expect(done?.testOutput?.toString()).toBe('lo\n');
  });
});

describe('afterwards', () => {
  it('no control is left', async () => {
    // The reps of a run that ended early are left to the sweep of its session.
    expect((await containersOf(trial)).filter((name) => !name.startsWith('trial '))).toEqual([]);
  });
});
