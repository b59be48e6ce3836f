import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { reviewPaths } from '../../challenge/review/paths.ts';
import { type Assignment, parseAssignment } from '../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { Platform } from '../../simulator/platform.ts';
import { call, type HttpReply } from './challenge-process.ts';
import { scratchFolder } from './scratch.ts';
import { allowlistOf } from './valid-result.ts';
import { POLICY, reviewAppOf } from './valid-review.ts';

export const REVIEW_MAIN = new URL('../../challenge/review/main.ts', import.meta.url).pathname;
export const CRASHING_REVIEW = new URL('crashing-review.ts', import.meta.url).pathname;

/** A rules bundle with one file. */
export function rulesBundle(revisionId = 'rules-1'): Buffer {
  const content = Buffer.from('# Rules\n\nDo not read the tests.\n');
  const file = {
    path: 'acceptance.md',
    length: content.length,
    sha256: sha256Hex(content),
    content_b64: content.toString('base64'),
  };
  return encodeCanonical({ schema_version: 1, revision_id: revisionId, files: [file] });
}

export const EMPTY_CORPUS = encodeCanonical({
  schema_version: 1,
  algorithm: 'winnow/v1',
  submissions: [],
  tasks: [],
  solution_fragments: [],
});

/** A configuration of `challenge/review/main.ts` with its folders below a new temporary one. */
export function reviewConfig(platform: Platform) {
  const base = scratchFolder();
  const file = (name: string, bytes: Buffer) => {
    writeFileSync(join(base, name), bytes);
    return join(base, name);
  };
  return {
    state_dir: join(base, 'state'),
    host: '127.0.0.1',
    port: 0,
    out_dir: join(base, 'out'),
    tdx_root_pem: platform.rootPem,
    collateral: platform.collateral,
    allowlist: allowlistOf(platform),
    accepted_tcb: ['UpToDate'],
    agent_zip_path: file('agent.zip', Buffer.from('the agent, as far as this test needs one')),
    rules_path: file('rules.json', rulesBundle()),
    corpus_path: file('corpus.json', EMPTY_CORPUS),
    policy: POLICY,
    review_app: reviewAppOf(platform),
  };
}
export type TestReviewConfig = ReturnType<typeof reviewConfig>;

export interface ReviewProcess {
  child: ChildProcess;
  assignment: Assignment;
  token: string;
  ask(
    method: 'GET' | 'POST',
    resource: keyof ReturnType<typeof reviewPaths>,
    body?: Buffer,
  ): Promise<HttpReply>;
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Resolves when it has killed itself. */
  died: Promise<void>;
}

/** Starts `script` and waits until it serves. */
export async function spawnReview(
  config: TestReviewConfig,
  script = REVIEW_MAIN,
  args: readonly string[] = [],
): Promise<ReviewProcess> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  const died = once(child, 'exit').then(() => undefined);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(config));
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line) as { url: string; assignment_id: string };
    const assignment = parseAssignment(readFileSync(join(config.out_dir, 'assignment.json')));
    const paths = reviewPaths(ready.assignment_id);
    const token = readFileSync(join(config.state_dir, `session-token-${ready.assignment_id}`), 'ascii');
    return {
      child,
      assignment,
      token,
      died,
      ask: (method, resource, body) =>
        call(`${ready.url}${paths[resource]}`, {
          method,
          token,
          ca: assignment.server_ca_pem,
          ...(body ? { body } : {}),
        }),
      kill: async (signal) => {
        child.kill(signal);
        await died;
      },
    };
  }
  throw new Error(`the review challenge did not start: ${errors}`);
}
