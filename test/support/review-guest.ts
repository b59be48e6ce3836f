import type { RawQuote } from '../../guest/attest/dstack.ts';
import type { ReviewEvent, ReviewHost } from '../../guest/review/config.ts';
import { OWN_POLICY } from '../../guest/review/prompt.ts';
import { type Assignment, reviewRoutes } from '../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { routingTo } from '../../guest/wire/model-request.ts';
import { parseReviewSubmission, type ReviewSubmission } from '../../guest/wire/review.ts';
import { zipFiles } from '../../scripts/agent/zip-files.ts';
import type { Platform } from '../../simulator/platform.ts';
import { completion, replying, startChatDouble } from './chat-double.ts';
import { type Answer, startKeyServer } from './key-server.ts';
import { reviewInputBytes } from './review-agents.ts';
import { NOW_MS } from './valid-result.ts';
import { reviewKeys, signedAssignment } from './valid-review.ts';

const MANIFEST = 'schema_version: 1\nkind: container\ncommand: ["python3", "/agent/a.py"]\nenv: []\n';
export const keys = reviewKeys();
const ID = 'review-1';
const TOKEN = `${ID}.${'ab'.repeat(32)}`;

/** What one test wants otherwise than an honest challenge and a clean agent have it. */
export interface Otherwise {
  files?: Readonly<Record<string, string | Buffer>>;
  assignment?: (honest: Assignment) => Partial<Assignment>;
  /** By the last part of its path: `assignment`, `artifact`, `rules`, `corpus`, `report`, ... */
  answers?: Readonly<Record<string, (honest: Answer, attempt: number) => Answer>>;
  chat?: Parameters<typeof startChatDouble>[0];
  withoutModel?: true;
  host?: (honest: ReviewHost) => Partial<ReviewHost>;
}

export interface GuestTest {
  host: ReviewHost;
  assignment: Assignment;
  events: ReviewEvent[];
  /** The last part of each path that was asked for, in order; the model's is `model`. */
  asked: string[];
  chat: Awaited<ReturnType<typeof startChatDouble>>;
  /** The last body posted there, and all of them. */
  posted: (name: string) => Buffer | undefined;
  allPosted: (name: string) => readonly Buffer[];
  report: () => ReviewSubmission;
}

async function zipOf(files: Otherwise['files']): Promise<Buffer> {
  const all = { 'agent.yaml': MANIFEST, ...(files ?? { 'a.py': 'print("work")\n' }) };
  return zipFiles(
    Object.entries(all).map(([path, content]) => ({ path, bytes: Buffer.from(content), executable: false })),
  );
}

function quoting(platform: Platform): ReviewHost['connectAgent'] {
  const getQuote = (reportData: Buffer): Promise<RawQuote> =>
    Promise.resolve({
      quote: platform.quote(reportData, { version: 4 }),
      eventLog: JSON.stringify(platform.eventLog),
      vmConfig: JSON.stringify(platform.vmShape),
    });
  return () => ({ getQuote }) as ReturnType<ReviewHost['connectAgent']>;
}

/** A guest's host over a challenge and a model on loopback; all of it gone when the test is. */
export async function guestTest(platform: Platform, otherwise: Otherwise = {}): Promise<GuestTest> {
  const zip = await zipOf(otherwise.files);
  const { rules, corpus, revisionId } = reviewInputBytes;
  const documents = new Map<string, Buffer>([
    ['artifact', zip],
    ['rules', rules],
    ['corpus', corpus],
  ]);
  const asked: string[] = [];
  const attempts = new Map<string, number>();
  const posted = new Map<string, Buffer[]>();
  const server = await startKeyServer(
    ({ path, body }) => {
      const name =
        path === reviewRoutes(ID).assignment ? 'assignment' : path.slice(path.lastIndexOf('/') + 1);
      asked.push(name);
      if (body.length > 0) posted.set(name, [...(posted.get(name) ?? []), body]);
      const attempt = (attempts.get(name) ?? 0) + 1;
      attempts.set(name, attempt);
      const document = documents.get(name);
      const honest = document ? { status: 200, body: document } : { status: 202, body: Buffer.from('{}') };
      return otherwise.answers?.[name]?.(honest, attempt) ?? honest;
    },
    { tls: { requestCert: false } },
  );
  const chat = await startChatDouble((response, request) => {
    asked.push('model');
    (otherwise.chat ?? replying(completion()))(response, request);
  });
  const path = reviewRoutes(ID).assignment;
  const honest = signedAssignment(platform, keys, {
    assignment_id: ID,
    api_base_url: server.origin,
    server_ca_pem: server.caPem,
    artifact: {
      agent_hash: sha256Hex(zip),
      zip_sha256: sha256Hex(zip),
      zip_size_bytes: zip.length,
      fetch_path: `${path}/artifact`,
    },
    rules: { snapshot_sha256: sha256Hex(rules), revision_id: revisionId, fetch_path: `${path}/rules` },
    similarity: { corpus_sha256: sha256Hex(corpus), fetch_path: `${path}/corpus` },
    policy: { model: 'vendor/model-1', routing: routingTo('vendor'), ...OWN_POLICY },
    session_token_sha256: sha256Hex(TOKEN),
  });
  const assignment = signedAssignment(platform, keys, { ...honest, ...otherwise.assignment?.(honest) });
  documents.set('assignment', encodeCanonical(assignment));
  const events: ReviewEvent[] = [];
  let nowMs = NOW_MS + 1000;
  const host: ReviewHost = {
    planRoot: keys.root,
    inputs: { assignmentId: ID, token: TOKEN, apiBaseUrl: server.origin, serverCaPem: server.caPem },
    model: otherwise.withoutModel ? null : { url: chat.url, caPem: chat.caPem, apiKey: 'the-key' },
    modelLimits: { connectMs: 5_000, totalMs: 20_000 },
    connectAgent: quoting(platform),
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
    randomHex: (bytes) => sha256Hex('delimiter').slice(0, bytes * 2),
    journal: { write: (event) => void events.push(event) },
    signal: new AbortController().signal,
    progress: { serverCaPem: null, plannedRequestSha256: null },
  };
  return {
    host: { ...host, ...otherwise.host?.(host) },
    assignment,
    events,
    asked,
    chat,
    posted: (name) => posted.get(name)?.at(-1),
    allPosted: (name) => posted.get(name) ?? [],
    report: () => parseReviewSubmission(posted.get('report')?.at(-1) ?? Buffer.alloc(0)),
  };
}
