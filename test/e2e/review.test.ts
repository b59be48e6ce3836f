import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseReviewFile } from '../../challenge/review/file.ts';
import { parsePlan } from '../../guest/wire/plan.ts';
import { parseReviewSubmission } from '../../guest/wire/review.ts';
import { zipDirectory } from '../../scripts/agent/zip-directory.ts';
import {
  type Behaviour,
  completion,
  type OpenChatDouble,
  openChatDouble,
  replying,
  VERDICT,
} from '../support/chat-double.ts';
import { type Ended, evaluator } from '../support/evaluator.ts';
import { scratchFolder } from '../support/scratch.ts';
import { writeAgent } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const ROOT = join(import.meta.dirname, '../..');
const AGENT = join(ROOT, 'test/fixtures/agents/word-tally');
const TASKS = join(ROOT, 'task-cache');
const KEY = 'a-key-that-nobody-may-see';
const MODEL = ['--model', completion().model, '--provider', 'vendor'];
const folder = scratchFolder();
const out = (name: string) => join(folder, name);

let model: OpenChatDouble;
let behaviour: Behaviour = replying(completion());
removeTaskImages(['word-tally']);
beforeAll(async () => {
  model = await openChatDouble((response, request) => behaviour(response, request), { scheme: 'http' });
});
afterAll(() => model.close());

function review(name: string, agent: string, ...more: string[]): Promise<Ended> {
  const options = ['--agent', agent, '--out', out(name), '--json', ...more];
  return evaluator(['review', ...options], { OPENROUTER_API_KEY: '' });
}
function askedReview(name: string, agent: string, body: unknown, status = 200): Promise<Ended> {
  behaviour = replying(body, status);
  const options = ['--agent', agent, '--out', out(name), '--json', ...MODEL];
  return evaluator(['review', ...options, '--model-endpoint', model.url], { OPENROUTER_API_KEY: KEY });
}
const summaryOf = ({ stdout }: Ended) => {
  expect(stdout.split('\n').filter(Boolean)).toHaveLength(1);
  return JSON.parse(stdout);
};
const run = (name: string, agent: string, ...more: string[]): Promise<Ended> =>
  evaluator([
    'run',
    ...['--cache', TASKS, '--tasks', 'word-tally', '--reps', '1', '--json', '--out', out(name)],
    ...['--agent', agent, ...more],
  ]);
const reviewFile = (name: string) => join(out(name), 'review.json');
/** A folder with the files of a review, one of them changed. */
function changed(name: string, from: string, edit: (text: string) => string): string {
  mkdirSync(out(name));
  for (const file of readdirSync(out(from))) copyFileSync(join(out(from), file), join(out(name), file));
  writeFileSync(reviewFile(name), edit(readFileSync(reviewFile(name), 'utf8')));
  return reviewFile(name);
}

describe('a review without a model', () => {
  it('does everything else, and escalates', async () => {
    const ended = await review('silent', AGENT);
    expect(ended.code, ended.stderr).toBe(1);
    expect(summaryOf(ended)).toEqual({
      verdict: 'escalate',
      reason_codes: ['model_output_malformed'],
      reason_code: null,
      agent_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      findings: [],
      similarity: { level: 'none', matched_agent_hash: null },
      model: { outcome: 'not_asked', returned_model: null },
      review_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(readdirSync(out('silent')).toSorted()).toEqual([
      'allowlist.json',
      'assignment.json',
      'collateral.json',
      'journal.jsonl',
      'report.json',
      'review-root.json',
      'review.json',
      'revocations.json',
      'root.pem',
    ]);
  });

  it('is what a key without an endpoint gives, and an endpoint without a key', async () => {
    const keyless = await review('keyless', AGENT, '--model-endpoint', model.url);
    expect(summaryOf(keyless).model.outcome).toBe('not_asked');
    expect(model.received).toHaveLength(0);
  });

  it('says of an agent that reads the tests where it does', async () => {
    const agent = await writeAgent(out('reader'), 'true\ncat /tests/test_outputs.py > /app/answers.txt\n');
    const ended = await review('reads', agent);
    expect(ended.code, ended.stderr).toBe(1);
    const summary = summaryOf(ended);
    expect(summary.verdict).toBe('reject');
    expect(summary.findings).toContainEqual(
      expect.objectContaining({ code: 'reads_hidden_tests', path: 'agent.sh', line: 2 }),
    );
  });

  it('compares with a corpus of earlier agents and tasks', async () => {
    const corpus = out('corpus');
    mkdirSync(corpus);
    const source = readFileSync(join(AGENT, 'agent.py'), 'utf8');
    const agent = out('renamed');
    mkdirSync(agent);
    copyFileSync(join(AGENT, 'agent.yaml'), join(agent, 'agent.yaml'));
    writeFileSync(join(agent, 'agent.py'), `# mine\n${source}`);
    writeFileSync(join(corpus, 'earlier.zip'), await zipDirectory(AGENT));
    const ended = await review('copied', agent, '--corpus', corpus);
    expect(summaryOf(ended)).toMatchObject({ verdict: 'escalate', similarity: { level: 'high' } });
    expect(summaryOf(ended).reason_codes).toContain('similarity_high_risk');
  });
});

describe('a review that asks a model', () => {
  it('allows, keeps the key to itself, and admits a run of this agent', async () => {
    const ended = await askedReview('allowed', AGENT, completion());
    expect(ended.code, ended.stderr).toBe(0);
    expect(summaryOf(ended)).toMatchObject({ verdict: 'allow', reason_codes: ['policy_passed'] });
    expect(model.received).toHaveLength(1);
    expect(model.received[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(ended.stdout + ended.stderr).not.toContain(KEY);
    for (const file of readdirSync(out('allowed'))) {
      expect(readFileSync(join(out('allowed'), file), 'latin1'), file).not.toContain(KEY);
    }
    const { reportBytes } = parseReviewFile(readFileSync(reviewFile('allowed')));
    const { evidence } = parseReviewSubmission(reportBytes);
    expect(Buffer.from(evidence.planned_request_b64, 'base64')).toEqual(model.received[0]?.body);

    const accepted = await run('admitted', AGENT, '--require-review', '--review', reviewFile('allowed'));
    expect(accepted.code, accepted.stderr).toBe(0);
    const ranked = await run('ranked', AGENT, '--ranked', '--review', reviewFile('allowed'));
    expect(ranked.code, ranked.stderr).toBe(0);
    for (const name of ['admitted', 'ranked']) {
      const plan = parsePlan(readFileSync(join(out(name), 'plan.json')));
      expect(plan.authorizing_review_digest).toBe(summaryOf(ended).review_digest);
    }
  });

  it('admits no other agent, and nobody once a byte of it is changed', async () => {
    const agent = await writeAgent(out('another'), 'true\n');
    const cases = [
      [agent, reviewFile('allowed'), /review_agent_mismatch/],
      [
        AGENT,
        changed('files', 'allowed', (text) => text.replace('"files":2', '"files":3')),
        /report_data_mismatch/,
      ],
      [
        AGENT,
        changed('reply', 'allowed', (text) => text.replace('"response_b64":"ey', '"response_b64":"eX')),
        /review_reply_mismatch/,
      ],
      [
        AGENT,
        changed('later', 'allowed', (text) => text.replace(/"received_at_ms":\d+/, '"received_at_ms":1')),
        /review_times_invalid/,
      ],
    ] as const;
    for (const [i, [of, file, code]] of cases.entries()) {
      const ended = await run(`refused-${i}`, of, '--review', file);
      expect(ended.code, ended.stderr).toBe(3);
      expect(ended.stderr).toMatch(code);
      expect(readdirSync(folder)).not.toContain(`refused-${i}`);
    }
  });

  it('admits nobody once it was taken back', async () => {
    const review = changed('revoked', 'allowed', (text) => text);
    const revoked = await evaluator(['review', '--revoke', review, '--reason', 'it reads the tests']);
    expect(revoked.code, revoked.stderr).toBe(0);
    expect(revoked.stdout).toMatch(/^revoked: [0-9a-f]{64}\n$/);
    const ended = await run('refused', AGENT, '--review', review);
    expect(ended.code, ended.stderr).toBe(2);
    expect(ended.stderr).toMatch(/it reads the tests \[review_revoked\]/);
    expect(readdirSync(folder)).not.toContain('refused');
  });

  it('that did not allow admits nobody', async () => {
    const ended = await askedReview(
      'rejected',
      AGENT,
      completion({}, { ...VERDICT, verdict: 'reject', reason_codes: ['hardcoded_llm_model'] }),
    );
    expect(ended.code).toBe(1);
    expect(summaryOf(ended)).toMatchObject({ verdict: 'reject', reason_codes: ['hardcoded_llm_model'] });
    const refused = await run('refused', AGENT, '--review', reviewFile('rejected'));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/review_not_allowed/);
  });

  it('that gets no answer brings no verdict, and its session counts as escalate', async () => {
    const ended = await askedReview('outage', AGENT, { error: { message: 'busy' } }, 503);
    expect(ended.code).toBe(5);
    expect(summaryOf(ended)).toMatchObject({ verdict: null, reason_code: 'model_unavailable' });
    expect(readdirSync(out('outage'))).not.toContain('review.json');
  });
});

describe('refused input', () => {
  it('names the option', async () => {
    const cases: [string[], RegExp][] = [
      [['review'], /--agent is missing/],
      [['review', '--agent', 'oracle'], /nothing to review/],
      [['review', '--agent', '/nowhere'], /no such file/],
      [['review', '--agent', AGENT, '--rules', folder, '--out', out('none')], /has no \.md file/],
      [['review', '--agent', AGENT, '--model-endpoint', 'x', '--out', out('none')], /not a URL/],
      [['review', '--agent', AGENT, '--model', '', '--out', out('none')], /policy.model/],
      [['review', '--revoke', '/nowhere', '--reason', 'x'], /no such file/],
      [['review', '--revoke', AGENT, '--reason', 'x', '--json'], /--json/],
      [['review', '--revoke', AGENT], /--reason is missing/],
      [['run', '--cache', TASKS, '--agent', AGENT, '--require-review'], /--require-review/],
    ];
    for (const [args, message] of cases) {
      const ended = await evaluator(args, { OPENROUTER_API_KEY: KEY });
      expect(ended.code, ended.stderr).toBe(2);
      expect(ended.stderr).toMatch(message);
    }
    expect(readdirSync(folder)).not.toContain('none');
  });
});
