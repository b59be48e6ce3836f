import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { evaluator, ROOT } from './evaluator.ts';
import { spread } from './statistics.ts';

/**
 * From an agent's end to its reward, r = 1, for a test script of the usual form; beside it, in the same run, what
 * installing the same two packages from the machine's package index costs. `verifier.ts [DATASET TASK]` takes
 * another task, with its unchanged tests.
 */
const RUNS = 6;
const IMAGE = 'python:3.11-slim-bookworm';
const [dataset = join(ROOT, 'bench/verifier'), task = 'usual'] = process.argv.slice(2);

type Rep = { reward: number; phases: Record<string, number> };
const toReward = ({ phases }: Rep) =>
  ['kill', 'size', 'tests', 'verify'].reduce((sum, phase) => sum + (phases[phase] ?? 0), 0);

function verification(): Rep[] {
  const from = ['--cache', dataset, '--solutions', dataset, '--tasks', task];
  const run = evaluator(['run', ...from, '--agent', 'oracle', '--reps', '1', '--concurrency', '1']);
  return run.events.filter((event) => event.event === 'rep') as unknown as Rep[];
}

// Neither apt-get nor uv's installer: what is left out makes this path look faster than it is.
const INSTALL = `python3 -m venv /tmp/e && /tmp/e/bin/pip install -q --disable-pip-version-check \
  pytest==8.4.1 pytest-json-ctrf==0.3.5 && echo 'def test_it(): pass' > /tmp/test_it.py &&
  /tmp/e/bin/pytest --ctrf /tmp/ctrf.json /tmp/test_it.py`;

function overNetwork(): number {
  const start = performance.now();
  const network = ['--network', 'host', ...(process.env.PIP_INDEX_URL ? ['--env', 'PIP_INDEX_URL'] : [])];
  const { status } = spawnSync('docker', ['run', '--rm', ...network, IMAGE, 'sh', '-c', INSTALL]);
  return status === 0 ? performance.now() - start : Number.NaN;
}

const reps: Rep[] = [];
const network: number[] = [];
for (let run = 0; run < RUNS; run++) {
  reps.push(...verification());
  if (run < 3) network.push(overNetwork());
}
const own = reps.map(toReward);
console.log(
  `\n${task}: agent's end to reward ${reps.map(({ reward }) => reward).join(' ')}: p50 / p95 / max ms`,
);
console.log(`  with the toolchain     ${spread(own)}`);
console.log(`  of that, the tests     ${spread(reps.map(({ phases }) => phases.tests ?? Number.NaN))}`);
if (network.some(Number.isNaN)) console.log('  from the package index: not reached');
else console.log(`  from the package index ${spread(network)}`);
