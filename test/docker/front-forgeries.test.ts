import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TaskFile } from '../../guest/tasks/types.ts';
import { judge, testOutputOf } from '../support/judged.ts';
import { buildPythonToolchain } from '../support/toolchains.ts';
import { startTrial, type TrialHarness } from '../support/trial.ts';

const MODES = ['restart', 'artifact'] as const;
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial({ toolchain: buildPythonToolchain });
});
afterAll(() => trial.close());

const tests = (text: string): TaskFile[] => [
  { path: 'tests/test_outputs.py', bytes: Buffer.from(text), executable: false },
];
const ANSWER = tests(`import json, os, re, subprocess

def test_answer():
    with open("/app/answer") as file:
        assert file.read().strip() == "right"
`);

/** As published test scripts go, with a copy by the script itself and another shell. */
const SCRIPT = `#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
cp /tests/test_outputs.py /tmp/copy.py
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`;

/** A report of one test that passed. */
const REPORT = JSON.stringify({
  results: {
    tool: { name: 'pytest' },
    summary: { tests: 1, passed: 1, failed: 0, pending: 0, skipped: 0, other: 0, start: 0, stop: 0 },
    tests: [{ name: 'test_answer', status: 'passed', duration: 0 }],
  },
});
/** Wins whenever anything of it runs during the verification: it ends test.sh before that writes a reward. */
const WIN = `echo 1 > /logs/verifier/reward.txt; echo '${REPORT}' > /logs/verifier/ctrf.json; kill -9 $PPID`;
const PYTHON_FORGER = `import os
open("/logs/verifier/reward.txt", "w").write("1")
open("/logs/verifier/ctrf.json", "w").write('${REPORT}')
os.kill(os.getppid(), 9)
`;
// The agent goes on with copies of its own: sh, bash and cp are among what it replaces.
const PREPARE = `mkdir -p /srv/tools
for tool in bash cat chmod cp dirname mkdir readlink setsid sh sleep; do cp "$(command -v $tool)" /srv/tools/; done
PATH=/srv/tools:$PATH
cat > /srv/forger <<'FORGER'
#!/srv/tools/sh
${WIN}
FORGER
cat > /srv/forger.py <<'FORGER'
${PYTHON_FORGER}FORGER
chmod 755 /srv/forger`;

/** Puts the text at each path. */
const plant = (text: string, ...paths: string[]) =>
  paths
    .map((path) => `mkdir -p "$(dirname ${path})"; cat > ${path} <<'PLANTED'\n${text}\nPLANTED`)
    .join('\n');
const replace = (...names: string[]) => `for name in ${names.join(' ')}; do
  for folder in /usr/local/sbin /usr/local/bin /usr/bin /bin /root/.local/bin /app; do
    mkdir -p $folder; cp --remove-destination /srv/forger $folder/$name
  done
done`;
const SITE = [
  '/usr/lib/python3',
  '/usr/local/lib/python3.11',
  '/usr/lib/python3.13',
  '/usr/local/lib/python3.13',
];

const FORGERIES: readonly (readonly [what: string, script: string])[] = [
  [
    'reward files',
    `mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo '{"reward":1}' > /logs/verifier/reward.json
     echo '${REPORT}' > /logs/verifier/ctrf.json; chmod 444 /logs/verifier/*`,
  ],
  ['a conftest.py in /tests', plant(PYTHON_FORGER, '/tests/conftest.py')],
  ['a conftest.py in WORKDIR and in /', plant(PYTHON_FORGER, '/app/conftest.py', '/conftest.py')],
  [
    'configurations that collect only',
    plant(
      '[pytest]\naddopts = --co -q',
      '/pytest.ini',
      '/app/pytest.ini',
      '/tests/pytest.ini',
      '/root/pytest.ini',
    ) + plant('[tool.pytest.ini_options]\naddopts = "--co"', '/app/pyproject.toml', '/pyproject.toml'),
  ],
  ['a curl', replace('curl', 'wget')],
  ['a uvx', replace('uv', 'uvx', 'pip', 'pytest')],
  ['a python3', replace('python', 'python3', 'python3.11', 'python3.13')],
  ['a bash and a sh', replace('bash', 'sh', 'dash', 'env')],
  [
    'an apt-get and every tool of a script',
    replace('apt-get', 'apt', 'cp', 'cat', 'mkdir', 'rm', 'tee', 'echo'),
  ],
  [
    'a sitecustomize.py, a usercustomize.py and a .pth',
    SITE.map((folder) =>
      plant(
        PYTHON_FORGER,
        `${folder}/sitecustomize.py`,
        `${folder}/dist-packages/sitecustomize.py`,
        `${folder}/site-packages/usercustomize.py`,
      ),
    ).join('\n') +
      plant(
        'import os; exec(open("/srv/forger.py").read())',
        ...SITE.map((folder) => `${folder}/dist-packages/a.pth`),
      ),
  ],
  [
    'modules that shadow imports',
    plant(
      PYTHON_FORGER,
      ...['json', 're', 'os', 'pytest', 'ctrf', 'subprocess'].map((name) => `/app/${name}.py`),
    ) + plant(PYTHON_FORGER, '/app/pytest/__init__.py', '/app/_pytest/__init__.py'),
  ],
  [
    'files that shells and tools read',
    plant(
      `export PATH=/app:$PATH; exec /srv/forger`,
      ...['/root/.bashrc', '/root/.profile', '/root/.bash_profile', '/etc/profile', '/etc/bash.bashrc'],
      '/root/.local/bin/env',
    ) + plant('output = "/logs/verifier/reward.txt"', '/root/.curlrc'),
  ],
  [
    'a writer in the background',
    `setsid bash -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' & sleep 0.2`,
  ],
];

const judgeIn = (mode: (typeof MODES)[number], answer: string, forgeries: readonly string[]) =>
  judge(trial, {
    mode,
    script: [`echo ${answer} > /app/answer`, PREPARE, ...forgeries].join('\n'),
    test: SCRIPT,
    tests: ANSWER,
    evidence: { kind: 'ctrf', passed: null },
  });
const ALL = FORGERIES.map(([, script]) => script);

describe.concurrent('a wrong answer in the container that the agent leaves', () => {
  it.each(FORGERIES)('scores 0 with %s', async (_, script) => {
    expect(await judgeIn('restart', 'wrong', [script])).toBe('reward 0');
  });
});

describe.concurrent.each(MODES)('with all forgeries at once, in mode %s', (mode) => {
  it.each([
    ['wrong', 'reward 0'],
    ['right', 'reward 1'],
  ])('a %s answer scores its true value', async (answer, expected) => {
    expect(await judgeIn(mode, answer, ALL)).toBe(expected);
  });
});

describe('a library that the agent has every program load', () => {
  it('is loaded neither by the shell, nor by Python, nor by curl', async () => {
    // Of Debian's libc6: says at the end of each process that it was there.
    const preload = '/usr/lib/x86_64-linux-gnu/libmemusage.so';
    const test = `echo ${preload} > /etc/ld.so.preload
/bin/true
echo "of the image: $?"
${SCRIPT}`;
    const script = `echo wrong > /app/answer; echo ${preload} > /etc/ld.so.preload`;
    const task = { taskId: 'preload', test, tests: ANSWER, evidence: { kind: 'ctrf', passed: 1 } as const };
    expect(await judge(trial, { ...task, script })).toBe('reward 0');
    // Once, by /bin/true, where it works: the file was in force all along.
    expect(testOutputOf(trial, 'preload').match(/Memory usage summary/g)).toHaveLength(1);
  });
});

describe("what the tests themselves run or import is the agent's", () => {
  it('which can end pytest, but not without the missing proof being seen', async () => {
    const imported = tests(
      'import sys\nsys.path.insert(0, "/app")\n\ndef test_it():\n    import solution\n    assert False\n',
    );
    const script = `cat > /app/solution.py <<'EOF'\nimport os\nos._exit(0)\nEOF`;
    const task = { test: SCRIPT, tests: imported, evidence: { kind: 'ctrf', passed: 1 } as const };
    expect(await judge(trial, { ...task, script })).toBe('reward 0');
  });
});
