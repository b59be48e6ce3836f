import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packTar } from '../../../guest/engine/tar.ts';
import { packagesEnv } from '../../../guest/stages/dependencies.ts';
import { createToolsVolume } from '../../../guest/trial/tools-volume.ts';
import { agentOutputOf } from '../../support/judged.ts';
import { wheel } from '../../support/package-index.ts';
import { agentRuntime, startTrial, type TrialHarness } from '../../support/trial.ts';

const WHEELS = [
  { filename: 'one-1-py3-none-any.whl', bytes: wheel('one', '1', { 'shared/one.py': 'word = "one"\n' }) },
  {
    filename: 'two-1-py3-none-any.whl',
    bytes: wheel('two', '1', { 'shared/two.py': 'from shared.one import word\n' }),
  },
];
let trial: TrialHarness;
let folder: string;

beforeAll(async () => {
  trial = await startTrial();
  folder = mkdtempSync(join(tmpdir(), 'packages-'));
  const nothing = join(folder, 'toolchain.tar');
  writeFileSync(nothing, packTar([{ path: './', directory: true }]));
  const { image } = trial.taskOf({ script: '' }).trial;
  await createToolsVolume(trial.context, nothing, image.id, WHEELS);
});
afterAll(async () => {
  await trial?.close();
  rmSync(folder, { recursive: true, force: true });
});

const script = `export ${packagesEnv({ wheels: WHEELS }).join(' ')}
cd / && python3 -c "
import os, shared.two
try: open(shared.two.__file__, 'a'); changed = True
except OSError: changed = False
print(shared.two.word, shared.two.__file__, changed)"`;

it('lie where every agent finds them and none can change them', async () => {
  await trial.run({ taskId: 'packages', script });
  expect(await agentOutputOf(trial, 'packages')).toBe('one /opt/evaluator/packages/shared/two.py False\n');
});

it('run in the Python that their machine code is chosen for', async () => {
  const { imageId } = await agentRuntime(trial.context.engine);
  const id = await trial.context.engine.create({
    name: `cvm-eval-${trial.session.id}-python`,
    image: imageId,
    command: [
      'python3',
      '-c',
      'import os, sys; sys.exit(sys.version_info[1] if os.confstr("CS_GNU_LIBC_VERSION") == "glibc 2.41" else 1)',
    ],
    env: [],
    workingDir: '/',
    labels: {},
    capAdd: [],
    nanoCpus: 1e9,
    cpuShares: 512,
    memoryBytes: 64 * 2 ** 20,
    pids: 16,
    fileSizeBytes: 2 ** 20,
    network: 'none',
    dns: 'engine',
    toolsVolume: null,
  });
  try {
    await trial.context.engine.start(id);
    expect(await trial.context.engine.waitExit(id, 60_000)).toBe(13);
  } finally {
    await trial.context.engine.remove(id);
  }
});
