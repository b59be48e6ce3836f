import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { TaskFile } from '../../guest/tasks/types.ts';
import { buildTaskToolchain, type Toolchain } from '../../scripts/toolchain/build.ts';
import { toolchainCache } from '../../scripts/toolchain/cache.ts';
import { BUILT_AT } from '../../scripts/toolchain/confine.ts';
import { judge, testOutputOf } from '../support/judged.ts';
import { scratchFolder } from '../support/scratch.ts';
import { startTrial, type TrialHarness } from '../support/trial.ts';

const PYTEST = `uv run pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`;
/** As published test scripts make an environment of a Python that they name. */
const SCRIPT = `#!/bin/bash
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
uv venv -p 3.12 .tb
source .tb/bin/activate
uv pip install pytest==8.4.1 mailman==3.3.8 pytest-json-ctrf==0.3.5
${PYTEST}`;
/** Served by Python 3.13 of the same volume alone. */
const OWN_SCRIPT = `uvx -w toml==0.10.2 pytest`;

let trial: TrialHarness;
let built: Toolchain;
const build = (outFile: string) =>
  buildTaskToolchain({ outFile, scripts: [SCRIPT, OWN_SCRIPT], policy: 'served' });

beforeAll(async () => {
  trial = await startTrial({
    toolchain: async (outFile) => {
      built = await build(outFile);
    },
  });
}, 900_000);
afterAll(() => trial.close());

const tests = (text: string): TaskFile[] => [
  { path: 'tests/test_outputs.py', bytes: Buffer.from(text), executable: false },
];
const ANSWER = tests(`import hashlib, ssl, subprocess, sys
import mailman.core.initialize

def test_answer():
    assert sys.version_info[:3] == (3, 12, 1)
    child = subprocess.run(["python", "-c", "import mailman, sys; print(sys.version)"], cwd="/", capture_output=True, text=True)
    assert child.stdout.startswith("3.12.1 ")
    # Of OpenSSL alone: a configuration that was read forbids it.
    hashlib.new("sm3")
    assert open("/app/answer").read().strip() == "right"
`);

const REPORT = JSON.stringify({
  results: {
    summary: { tests: 1, passed: 1, failed: 0, pending: 0, skipped: 0, other: 0, start: 0, stop: 0 },
  },
});
/** Wins if it is run: it ends pytest before that has a result. */
const FORGER = `import os
open("/logs/verifier/reward.txt", "w").write("1")
open("/logs/verifier/ctrf.json", "w").write('${REPORT}')
os.kill(os.getppid(), 9)
`;
const OPENSSL = `openssl_conf = init
[init]
alg_section = algorithms
[algorithms]
default_properties = fips=yes`;

/** Puts the text at each path. */
const plant = (text: string, ...paths: string[]) =>
  paths
    .map((path) => `mkdir -p "$(dirname ${path})"; cat > ${path} <<'PLANTED'\n${text}\nPLANTED`)
    .join('\n');
const LIBRARIES = ['/usr/lib', '/usr/local/lib', '/app/.tb/lib', `${BUILT_AT}/lib`].map(
  (folder) => `${folder}/python3.12`,
);
const FORGERIES = [
  plant(
    FORGER,
    ...LIBRARIES.flatMap((folder) => [
      `${folder}/sitecustomize.py`,
      `${folder}/os.py`,
      `${folder}/site-packages/usercustomize.py`,
      `${folder}/site-packages/sitecustomize.py`,
    ]),
    ...['mailman', 'pytest', 'hashlib', 'sitecustomize'].map((name) => `/app/${name}.py`),
  ),
  plant(
    'import os; exec(open("/usr/lib/python3.12/sitecustomize.py").read())',
    ...LIBRARIES.map((folder) => `${folder}/site-packages/a.pth`),
  ),
  plant(
    OPENSSL,
    `${BUILT_AT}/ssl/openssl.cnf`,
    '/usr/lib/ssl/openssl.cnf',
    '/etc/ssl/openssl.cnf',
    '/usr/local/ssl/openssl.cnf',
  ),
  // Neither of them is a library: whoever opens one fails.
  plant('', ...['libpython3.12.so.1.0', 'libffi.so.7'].map((name) => `/usr/lib/x86_64-linux-gnu/${name}`)),
  plant('export PYTHONPATH=/app', '/app/.tb/bin/activate', '/app/.venv/bin/activate', '/root/.bashrc'),
  plant('home = /usr/bin', '/app/.tb/pyvenv.cfg', '/app/.venv/pyvenv.cfg'),
].join('\n');

it('a volume with a second Python has the same bytes again, at another time and in another folder', async () => {
  const folder = scratchFolder();
  const cache = toolchainCache();
  vi.stubEnv('XDG_CACHE_HOME', join(folder, 'other'));
  vi.stubEnv('TMPDIR', folder);
  try {
    mkdirSync(toolchainCache(), { recursive: true });
    // What was downloaded is shared; what was built is not.
    for (const part of ['debs', 'wheels', 'interpreters'])
      symlinkSync(join(cache, part), join(toolchainCache(), part));
    expect(await build(join(folder, 'again.tar'))).toEqual(built);
  } finally {
    vi.unstubAllEnvs();
  }
  expect(built.interpreters.map(({ version }) => version)).toEqual(['3.12.1']);
});

describe('a script that asks for Python 3.12', () => {
  it.each([
    ['wrong', 'reward 0'],
    ['right', 'reward 1'],
  ])(
    'scores a %s answer at its true value, whatever was planted for its Python',
    async (answer, expected) => {
      const script = `echo ${answer} > /app/answer\n${FORGERIES}`;
      const evidence = { kind: 'ctrf', passed: 1 } as const;
      const task = { taskId: answer, script, test: SCRIPT, tests: ANSWER, evidence };
      expect(await judge(trial, task), testOutputOf(trial, answer)).toBe(expected);
    },
  );

  it('is refused by name whatever is of the other Python, or would have it instead', async () => {
    const refused = [
      ['uv pip install toml==0.10.2', 'front_unserved_package: toml==0.10.2'],
      ['uvx -w mailman==3.3.8 pytest', 'front_unserved_package: mailman==3.3.8'],
      ['uv venv -p 3.12.2 x', 'front_unserved_python: 3.12.2'],
      ['uv python pin 3.12', 'front_unserved_python: 3.12'],
      ['uv add toml', 'front_unserved_command: uv add in an environment of Python 3.12'],
      ['python -V', 'front_unserved_command: python in an environment of Python 3.12'],
      ['pytest /tests', 'front_unserved_command: pytest in an environment of Python 3.12'],
      ['uvx -w pytest -p 3.12 pytest', 'front_unserved_option: Python 3.12 behind packages'],
    ];
    const commands = refused.map(([command]) => `${command}\necho "ended with $?"\n`).join('');
    // Without the note that a command leaves, the tests are believed, and their output can be read.
    const end = 'rm /logs/verifier/.evaluator-front\necho 1 > /logs/verifier/reward.txt\n';
    const test = SCRIPT.replace(PYTEST, commands + end);
    expect(await judge(trial, { taskId: 'refused', script: ':', test, tests: ANSWER })).toBe('reward 1');
    const lines = refused.map(([, refusal]) => `verifier front: ${refusal}\nended with 97\n`);
    expect(testOutputOf(trial, 'refused')).toContain(lines.join(''));
  });

  it('has 3.13 again where it asks for that, or leaves its environment', async () => {
    const test = `${SCRIPT.replace(PYTEST, '')}uvx -w toml==0.10.2 pytest --version && deactivate && uv pip install toml pytest-json-ctrf
uv run python -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py && echo 1 > /logs/verifier/reward.txt\n`;
    const own = tests('import sys, toml\n\ndef test_it():\n    assert sys.version_info[:2] == (3, 13)\n');
    expect(await judge(trial, { taskId: 'own', script: ':', test, tests: own })).toBe('reward 1');
  });
});
