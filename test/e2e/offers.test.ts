import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Result } from '../../guest/wire/result.ts';
import { ensureTestImage } from '../docker/fixtures.ts';
import { choice, completion, openChatDouble, replying } from '../support/chat-double.ts';
import { evaluator } from '../support/evaluator.ts';
import { pin, startIndexDouble, wheel } from '../support/package-index.ts';
import { scratchFolder } from '../support/scratch.ts';
import { SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

removeTaskImages(['small']);

const API_KEY = 'sk-upstream-secret';
const WORD = wheel('word', '1.0', { 'word.py': 'word = "right"\n' });

/** Right when both its package is there and the model says so. */
const SCRIPT = `body='{"model":"'$INFERENCE_MODELS'","messages":[{"role":"user","content":"the word?"}]}'
said=$(busybox wget -q -O - --header "Authorization: Bearer $OPENAI_API_KEY" --post-data "$body" "$OPENAI_BASE_URL/chat/completions")
if [ -f "$PYTHONPATH/word.py" ]; then case $said in *'"content":"right"'*) echo right > /app/answer ;; esac; fi
`;

const indented = (pem: string) => pem.trimEnd().replaceAll(/^/gm, '    ');

/** A folder with a task, an agent with these requirements, and what is offered to it. */
async function prepared(requirements: string) {
  await ensureTestImage();
  const folder = scratchFolder();
  const model = await openChatDouble(replying(completion({ choices: [choice(null, 'right')] })), {
    // The host's address on the engine's default bridge.
    address: '172.17.0.1',
  });
  onTestFinished(() => model.close());
  const index = await startIndexDouble({ word: [{ filename: 'word-1.0-py3-none-any.whl', bytes: WORD }] });
  const { section } = index;
  const offers = join(folder, 'offers.yaml');
  await writeFile(
    offers,
    `inference:
  upstream: ${model.url}
  ca_pem: |
${indented(model.caPem)}
  models: [vendor/model-1]
  caps: {requests: 10, sent_bytes: 100000, received_bytes: 100000, tokens: 1000, reply_tokens: 100}
packages:
  index: ${section.index}
  ca_pem: |
${indented(section.ca_pem ?? '')}
  names: [word]
  max_bytes: 100000
`,
  );
  const tasks = await writeTasks(join(folder, 'tasks'), { small: SMALL_TASK });
  const agent = await writeAgent(join(folder, 'agent'), SCRIPT);
  await writeFile(join(agent, 'requirements.txt'), requirements);
  const out = join(folder, 'out');
  const args = [
    'run',
    '--cache',
    tasks,
    '--agent',
    agent,
    '--reps',
    '1',
    '--offers',
    offers,
    '--out',
    out,
    '--json',
  ];
  return { args, out, model, index };
}

it('an agent asks its model and has its packages, and the record says which', async () => {
  const { args, out, model } = await prepared(pin('word', '1.0', WORD));
  const { code, stdout, stderr } = await evaluator(args, { INFERENCE_API_KEY: API_KEY });
  expect(code, stderr).toBe(0);
  const { score, result } = JSON.parse(stdout) as { score: number; result: Result };
  expect(score).toBe(1);
  expect(result.score_record.dependencies).toEqual([
    { name: 'word', version: '1.0', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ]);
  expect(result.score_record.agent_runtime_image).toMatch(/^sha256:/);
  expect(model.received[0]?.headers.authorization).toBe(`Bearer ${API_KEY}`);
  const journal = await readFile(join(out, 'journal.jsonl'), 'utf8');
  const rep = journal.split('\n').find((line) => line.includes('"event":"rep"')) ?? '';
  expect(JSON.parse(rep)).toMatchObject({ inference: { requests: 1, refused: 0 } });
  expect(journal + stdout + stderr).not.toContain(API_KEY);
});

it('a requirement that is not offered ends the run before any key, with its line', async () => {
  const { args, out, index } = await prepared(`# mine\n${pin('evil', '1.0', WORD)}`);
  const { code, stdout, stderr } = await evaluator(args, { INFERENCE_API_KEY: API_KEY });
  expect([code, JSON.parse(stdout).reason_code]).toEqual([2, 'dependency_not_listed']);
  expect(stderr).toContain('requirements.txt:2: evil');
  expect(index.requests).toEqual([]);
  expect(await readFile(join(out, 'journal.jsonl'), 'utf8')).not.toContain('"stage":"unlock"');
});

it('without the key of the model nothing is begun', async () => {
  const { args, out } = await prepared('');
  const { code, stdout, stderr } = await evaluator(args, { INFERENCE_API_KEY: '' });
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('[inference_key_missing]')]);
  expect(stderr).not.toContain('baking');
  expect(existsSync(out)).toBe(false);
});
