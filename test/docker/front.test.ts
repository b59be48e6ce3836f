import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../guest/engine/docker.ts';
import type { ContainerSpec, Engine } from '../../guest/engine/port.ts';
import { packTar, type TarEntry } from '../../guest/engine/tar.ts';
import { readTar } from '../../guest/engine/tar-read.ts';
import { BASE_CAPABILITIES } from '../../guest/trial/capabilities.ts';
import { makeBases } from '../../scripts/tasks/base.ts';
import { buildToolchain } from '../../scripts/toolchain/build.ts';
import { selectFor } from '../../scripts/toolchain/select.ts';
import { scratchFolder } from '../support/scratch.ts';
import { ENGINE_SOCKET, ensureTestImage, TEST_LABEL, testName } from './fixtures.ts';

const IMAGE = 'python:3.11-slim-bookworm';
const TOOLS = '/opt/evaluator';
const MIB = 1024 * 1024;
const dir = scratchFolder();
let engine: Engine;
const volume = testName();

beforeAll(async () => {
  engine = connectDocker(ENGINE_SOCKET);
  if ((await engine.image(IMAGE)) === null) {
    await makeBases({ engineSocket: ENGINE_SOCKET, tags: new Set([IMAGE]), onProgress: () => {} });
  }
  const outFile = join(dir, 'tools.tar');
  const selection = selectFor([
    {
      python: ['requests==2.32.4', 'numpy==2.3.1', 'psutil==7.0.0', 'pip==25.2', 'setuptools==80.9.0'],
      apt: ['expect', 'sshpass', 'primer3', 'git', 'gcc'],
    },
    { python: ['requests==2.32.5'], apt: [] },
  ]);
  await buildToolchain({ outFile, selection, policy: 'served' });
  await engine.createVolume(volume, { [TEST_LABEL]: 'front' });
  const filler = await engine.create(await spec(IMAGE, ['true'], 'rw'));
  await engine.putArchive(filler, TOOLS, createReadStream(outFile));
  await engine.remove(filler);
}, 900_000);
afterAll(async () => {
  await engine.removeVolume(volume);
});

async function imageId(ref: string): Promise<string> {
  const image = await engine.image(ref);
  if (image === null) throw new Error(`${ref} is not there`);
  return image.id;
}

async function spec(image: string, command: string[], access: 'ro' | 'rw'): Promise<ContainerSpec> {
  return {
    name: testName(),
    image: await imageId(image),
    command,
    env: ['HOME=/root'],
    workingDir: '/',
    labels: { [TEST_LABEL]: 'front' },
    capAdd: [...BASE_CAPABILITIES],
    nanoCpus: 1e9,
    cpuShares: 1024,
    memoryBytes: 512 * MIB,
    pids: 256,
    fileSizeBytes: 1024 * MIB,
    network: 'none',
    dns: 'engine',
    toolsVolume: { name: volume, target: TOOLS, access },
  };
}

type Verification = { exitCode: number; reward: string; ctrf: Ctrf | null; notes: string; output: string };
type Ctrf = { results: { summary: { tests: number; passed: number; failed: number } } };

/**
 * Runs test.sh as a trial does in its second life, without a network: entry.sh finds the tests under their
 * random name. `agent`: files that are there before, by absolute path.
 */
async function verification(options: {
  tests: Record<string, string>;
  agent?: Record<string, string>;
  image?: string;
}): Promise<Verification> {
  const secret = `.evaluator-${randomBytes(16).toString('hex')}`;
  const commitment = createHash('sha256').update(`/${secret}`).digest('hex');
  const command = [`${TOOLS}/busybox`, 'sh', `${TOOLS}/entry.sh`, 'hold', commitment];
  const id = await engine.create(await spec(options.image ?? IMAGE, command, 'ro'));
  try {
    await engine.putArchive(id, '/', packTar(uploads(secret, options.tests, options.agent ?? {})));
    await engine.start(id);
    const exitCode = await engine.waitExit(id, 60_000);
    const stream = await engine.getArchive(id, '/logs/verifier');
    const files = await readTar(stream, { totalBytes: 8 * MIB, entries: 100, depth: 4, timeMs: 10_000 });
    const text = (name: string) =>
      files.find((file) => file.path === `verifier/${name}`)?.bytes.toString() ?? '';
    return {
      exitCode,
      reward: text('reward.txt'),
      ctrf: text('ctrf.json') === '' ? null : JSON.parse(text('ctrf.json')),
      notes: text('.evaluator-front'),
      output: text('test-output.txt'),
    };
  } finally {
    await engine.remove(id);
  }
}

function uploads(secret: string, tests: Record<string, string>, agent: Record<string, string>): TarEntry[] {
  const bytes = (text: string, mode: 0o644 | 0o755): { bytes: Buffer; mode: 0o644 | 0o755 } => ({
    bytes: Buffer.from(text),
    mode,
  });
  return [
    { path: './', directory: true },
    { path: 'app', directory: true },
    ...Object.entries(agent).map(([path, text]) => ({ path: path.slice(1), ...bytes(text, 0o755) })),
    { path: secret, directory: true },
    { path: `${secret}/env`, ...bytes("EVALUATOR_WORKDIR='/app'\n", 0o644) },
    { path: `${secret}/tests`, directory: true },
    { path: `${secret}/tests/demo`, directory: true },
    ...Object.entries(tests).map(([path, text]) => ({
      path: `${secret}/tests/${path}`,
      ...bytes(text, 0o755),
    })),
  ];
}

const REWARD = `
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`;
const UV = `#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
`;
const PYTEST = 'pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA';
const uvx = (...extra: string[]) =>
  `${UV}uvx -p 3.13 -w pytest==8.4.1 ${extra.join(' ')} -w pytest-json-ctrf==0.3.5 ${PYTEST}${REWARD}`;
const ANSWER_IS_42 = 'def test_answer():\n    assert open("/app/answer").read() == "42"\n';

describe('a test script of the usual form, unchanged, without a network', () => {
  it('gives reward 1 and a CTRF report when the tests pass', async () => {
    const seen = await verification({
      tests: { 'test.sh': uvx(), 'test_outputs.py': ANSWER_IS_42 },
      agent: { '/app/answer': '42' },
    });
    expect(seen).toMatchObject({ exitCode: 100, reward: '1\n', notes: '' });
    expect(seen.ctrf?.results.summary).toMatchObject({ tests: 1, passed: 1, failed: 0 });
  });

  it('gives reward 0 and a CTRF report when a test fails', async () => {
    const seen = await verification({
      tests: { 'test.sh': uvx(), 'test_outputs.py': ANSWER_IS_42 },
      agent: { '/app/answer': '41' },
    });
    expect(seen).toMatchObject({ exitCode: 100, reward: '0\n', notes: '' });
    expect(seen.ctrf?.results.summary).toMatchObject({ tests: 1, passed: 0, failed: 1 });
  });

  it('serves other packages in the version that is asked for', async () => {
    const version = 'import requests\n\ndef test_version():\n    assert requests.__version__ == "2.32.4"\n';
    const seen = await verification({
      tests: { 'test.sh': uvx('-w requests==2.32.4'), 'test_outputs.py': version },
    });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });

  it('serves pip into the image, and python -m pytest', async () => {
    const script = `#!/bin/bash
pip install pytest==8.4.2 requests==2.32.5 pytest-json-ctrf==0.3.5 --break-system-packages
python -m ${PYTEST}${REWARD}`;
    const tests =
      'import pytest, requests\n\ndef test_version():\n    assert pytest.__version__ == "8.4.2"\n';
    const seen = await verification({ tests: { 'test.sh': script, 'test_outputs.py': tests } });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
    expect(seen.ctrf?.results.summary.passed).toBe(1);
  });

  it('serves uv environments', async () => {
    const script = `${UV}uv venv -p 3.13 .tb
source .tb/bin/activate
uv pip install pytest==8.4.1 pytest-json-ctrf==0.3.5
uv run ${PYTEST}${REWARD}`;
    const seen = await verification({
      tests: { 'test.sh': script, 'test_outputs.py': 'def test_it():\n    pass\n' },
    });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });

  it('installs an editor where a login shell finds it', async () => {
    const script = `#!/bin/bash\napt-get install -y vim && bash --login -c 'command -v vim'${REWARD}`;
    expect(await verification({ tests: { 'test.sh': script } })).toMatchObject({ reward: '1\n', notes: '' });
  });

  it('reaches the services of the container itself', async () => {
    const script = `#!/bin/bash
python3 -m http.server --directory /tests 8000 &
until wget -qO /dev/null http://127.0.0.1:8000/page; do sleep 0.1; done
[ "$(curl -sSfL http://localhost:8000/page; curl -s file:///tests/page -o -)" = "hellohello" ]${REWARD}`;
    const seen = await verification({ tests: { 'test.sh': script, page: 'hello' } });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });
});

describe('an image that has nothing of what a test script needs', () => {
  it("is verified by the volume's own programs: one static busybox, no bash, no Python, no C library", async () => {
    const test = `${ANSWER_IS_42}
def test_python():
    import subprocess, sys
    assert sys.version_info[:2] == (3, 13)
    for python in ("python3", "python", sys.executable):
        subprocess.run([python, "-c", "import pytest, ssl, sqlite3, ctypes, lzma, bz2, zlib, decimal"], check=True)
`;
    const seen = await verification({
      tests: { 'test.sh': uvx(), 'test_outputs.py': test },
      agent: { '/app/answer': '42' },
      image: await ensureTestImage(),
    });
    expect(seen).toMatchObject({ exitCode: 100, reward: '1\n', notes: '' });
    expect(seen.ctrf?.results.summary).toMatchObject({ tests: 2, passed: 2 });
  });

  it('is verified in the same way where Debian has no Python', async () => {
    const script = uvx().replace('#!/bin/bash', '#!/bin/bash\nrm -rf /usr/bin/python3* /usr/lib/python3*');
    const seen = await verification({
      tests: { 'test.sh': script, 'test_outputs.py': ANSWER_IS_42 },
      agent: { '/app/answer': '42' },
    });
    expect(seen).toMatchObject({ exitCode: 100, reward: '1\n', notes: '' });
  });

  it('has compiled packages and programs of Debian, where a script asks for them', async () => {
    const test = `
import subprocess
import numpy, psutil

def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

def test_packages():
    assert numpy.__version__ == "2.3.1" and (numpy.eye(3) @ numpy.ones(3)).sum() == 3
    assert psutil.Process().memory_info().rss > 0

def test_programs():
    script = "spawn sh -c {read x; echo got \\$x}; send secret\\\\n; expect {got secret}; exit 7"
    assert subprocess.run(["expect", "-c", script]).returncode == 7
    assert subprocess.run(["/usr/bin/expect", "-c", "exit 8"]).returncode == 8
    assert "sshpass" in said("sshpass", "-V")
    assert 30 < float(said("oligotm", "ACGTACGTACGTACGTACGT")) < 80
    subprocess.run(["/usr/bin/git", "init", "-q", "/tmp/r"], check=True)
    assert said("/usr/bin/git", "-C", "/tmp/r", "status", "--porcelain") == ""
`;
    const script = uvx('-w numpy==2.3.1 -w psutil==7.0.0').replace(
      '-y curl',
      '-y curl expect sshpass primer3 git',
    );
    const seen = await verification({
      tests: { 'test.sh': script, 'test_outputs.py': test },
      image: await ensureTestImage(),
    });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });

  it('has an environment that tests can install into, as uv makes one', async () => {
    const test = `
import subprocess, sys

def test_install():
    assert sys.executable.startswith("/.verifier-")
    prefix = subprocess.run(["python", "-c", "import sys; print(sys.prefix, sys.base_prefix)"], capture_output=True, text=True)
    assert prefix.stdout.split() == [sys.executable.removesuffix("/bin/python3"), "/opt/evaluator/runtime"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "/tests/demo"], check=True)
    import demo
    assert demo.ANSWER == 42
    subprocess.run(["python3", "-m", "demo"], check=True)
`;
    const seen = await verification({
      tests: {
        'test.sh': uvx('-w pip==25.2 -w setuptools==80.9.0'),
        'test_outputs.py': test,
        'demo/pyproject.toml': '[project]\nname = "demo"\nversion = "1"\n',
        'demo/demo.py': 'ANSWER = 42\n',
      },
      image: await ensureTestImage(),
    });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });

  it('has no python3 of its own to install into', async () => {
    const script = '#!/bin/sh\npip install pytest==8.4.1\necho "ended $?"\n';
    const seen = await verification({ tests: { 'test.sh': script }, image: await ensureTestImage() });
    expect(seen.notes).toBe('front_no_python this image has no python3\n');
    expect(seen.output).toContain('ended 97');
  });
});

const UNSERVED = [
  ['uvx -w pytest==8.4.1 -w numpy==2.3.0 pytest', 'front_unserved_package numpy==2.3.0'],
  ['uvx -w pytest==8.4.1 -w torch==2.7.1 pytest', 'front_unserved_package torch==2.7.1'],
  ['uvx -w pytest==7.0.0 pytest', 'front_unserved_package pytest==7.0.0'],
  ['uvx -p 3.12 -w pytest==8.4.1 pytest', 'front_unserved_python 3.12'],
  ['uvx ruff check', 'front_unserved_command uvx ruff'],
  ['uvx --unheard-of pytest', 'front_unserved_option uvx --unheard-of'],
  ['pip install psutil==6.0.0', 'front_unserved_package psutil==6.0.0'],
  ['pip install --index-url https://example.com/simple x', 'front_unserved_url https://example.com/simple'],
  ['uv add httpx', 'front_unserved_package httpx'],
  ['uv run main.py', 'front_unserved_command uv run main.py'],
  ['uv publish', 'front_unserved_command uv publish'],
  ['apt-get install -y curl imagemagick', 'front_unserved_apt imagemagick'],
  ['apt install imagemagick', 'front_unserved_apt imagemagick'],
  ['curl -fsSL https://example.com/tool.sh', 'front_unserved_url https://example.com/tool.sh'],
  ['curl http://localhost.example.com/', 'front_unserved_url http://localhost.example.com/'],
  ['curl http://127.0.0.1@example.com/', 'front_unserved_url http://127.0.0.1@example.com/'],
  ['curl http://127.0.0.1.example.com/', 'front_unserved_url http://127.0.0.1.example.com/'],
  ['wget https://example.com/x', 'front_unserved_url https://example.com/x'],
] as const;

describe('a request that is not served', () => {
  // One container for all: each command's notes and status, between marks.
  it('is noted by its code and ends with 97', async () => {
    const lines = UNSERVED.map(([command]) => `echo "# ${command}" >>$N; ${command}; echo "$?" >>$N`);
    const script = `#!/bin/bash\nN=/logs/verifier/.evaluator-front\n${lines.join('\n')}\n`;
    const { notes } = await verification({ tests: { 'test.sh': script } });
    expect(notes.trimEnd().split('\n')).toEqual(
      UNSERVED.flatMap(([command, note]) => [`# ${command}`, note, '97']),
    );
  });

  it('is one printable line, however it is written', async () => {
    const command = `uvx -w $'x\\ny\\x1b[31m' pytest; uvx -w ${'n'.repeat(500)} pytest`;
    const { notes } = await verification({ tests: { 'test.sh': `#!/bin/bash\n${command}\n` } });
    const lines = notes.trimEnd().split('\n');
    expect(lines[0]).toBe('front_unserved_package x?y?[31m');
    expect(lines[1]).toBe(`front_unserved_package ${'n'.repeat(200)}`);
    expect(lines).toHaveLength(2);
  });

  it('below pytest is not noted: the caller may be the program under test', async () => {
    const test =
      'import subprocess\n\ndef test_it():\n    assert subprocess.run(["curl", "https://example.com"]).returncode == 97\n';
    const seen = await verification({ tests: { 'test.sh': uvx(), 'test_outputs.py': test } });
    expect(seen).toMatchObject({ reward: '1\n', notes: '' });
  });
});

describe('what an agent may have left behind', () => {
  const FAILS = 'def test_it():\n    assert False\n';
  const FORGE = 'import os\nos._exit(0)\n';

  it('a file in the way of uv does not turn a failing test into a reward', async () => {
    const seen = await verification({
      tests: { 'test.sh': uvx(), 'test_outputs.py': FAILS },
      agent: { '/root/.local': 'not a folder' },
    });
    expect(seen).toMatchObject({ reward: '0\n', notes: '' });
    expect(seen.ctrf?.results.summary).toMatchObject({ tests: 1, failed: 1 });
  });

  it('specs do not tell the compiler what to start', async () => {
    const module = `#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "built", 0, -1, 0};
PyMODINIT_FUNC PyInit_built(void) { return PyModule_Create(&definition); }
`;
    const test = `import subprocess, sys, sysconfig

def test_it():
    headers = "-I" + sysconfig.get_path("include")
    command = ["gcc", "-shared", "-fPIC", headers, "/tests/built.c", "-o", "/tmp/built.so"]
    subprocess.run(command, check=True)
    sys.path.append("/tmp")
    import built
`;
    const script = `${UV.replace('curl', 'curl gcc')}uvx -p 3.13 pytest /tests/test_outputs.py -rA${REWARD}`;
    const forged = '#!/bin/sh\necho started >> /srv/started\n';
    const specs = '*link_command:\n/srv/forger\n\n';
    const { notes, output, reward } = await verification({
      agent: {
        '/srv/forger': forged,
        '/usr/lib/gcc/x86_64-linux-gnu/specs': specs,
        '/usr/lib/gcc/x86_64-linux-gnu/14/specs': specs,
        '/usr/lib/gcc/specs': specs,
        '/app/specs': specs,
        '/usr/libexec/gcc/x86_64-linux-gnu/14/cc1': forged,
        '/app/cc1': forged,
        '/usr/local/bin/ld': forged,
      },
      tests: {
        'test.sh': `${script}test ! -e /srv/started || echo forged`,
        'test_outputs.py': test,
        'built.c': module,
      },
    });
    expect(output).not.toContain('forged');
    expect({ notes, reward }, output).toEqual({ notes: '', reward: '1\n' });
  });

  it('a module in WORKDIR does not shadow pytest for python -m pytest', async () => {
    const script = `#!/bin/bash\npip install pytest==8.4.1 pytest-json-ctrf==0.3.5\npython -m ${PYTEST}${REWARD}`;
    const seen = await verification({
      tests: { 'test.sh': script, 'test_outputs.py': FAILS },
      agent: { '/app/pytest.py': FORGE, '/app/json.py': FORGE },
    });
    expect(seen).toMatchObject({ reward: '0\n', notes: '' });
  });
});
