import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseReviewFile } from '../../../challenge/review/file.ts';
import { SqliteReviewLedger } from '../../../challenge/review/sqlite.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { eventually, type HttpReply } from '../../support/challenge-process.ts';
import {
  CRASHING_REVIEW,
  type ReviewProcess,
  reviewConfig,
  spawnReview,
  type TestReviewConfig,
} from '../../support/review-process.ts';
import { reviewFor, reviewPlatform } from '../../support/valid-review.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await reviewPlatform({ nowMs: Date.now() });
});
const running: ReviewProcess[] = [];
afterEach(async () => {
  for (const { child, kill } of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL');
  }
});
async function start(...args: Parameters<typeof spawnReview>): Promise<ReviewProcess> {
  const started = await spawnReview(...args);
  running.push(started);
  return started;
}
const crashing = (config: TestReviewConfig, ...args: string[]) => start(config, CRASHING_REVIEW, args);

/** What a guest holds, whatever becomes of the challenge: its report is made once. */
interface Held {
  report: Buffer | null;
  receipt: Buffer | null;
}
const orNull = (reply: Promise<HttpReply>) => reply.catch(() => null);

/** One life of a guest: stops where nobody answers. */
async function live(one: ReviewProcess, held: Held): Promise<'delivered' | 'cut off'> {
  if (!held.report) {
    const submission = reviewFor(platform, one.assignment, {
      startedAtMs: Date.now(),
      finishedAtMs: Date.now(),
    });
    const asked = await orNull(one.ask('GET', 'assignment'));
    if (!asked) return 'cut off';
    expect(asked.status).toBe(200);
    const { request_sha256: request } = submission.report.review_core.model;
    const notice = { assignment_id: one.assignment.assignment_id, planned_request_sha256: request };
    const started = await orNull(one.ask('POST', 'modelCallStarted', encodeCanonical(notice)));
    if (!started) return 'cut off';
    expect(started.status).toBe(200);
    held.report = encodeCanonical(submission);
  }
  const posted = await orNull(one.ask('POST', 'report', held.report));
  if (!posted) return 'cut off';
  expect([200, 202]).toContain(posted.status);
  if (held.receipt) expect(posted.body).toEqual(held.receipt);
  held.receipt = posted.body;
  return 'delivered';
}
const stateOf = async (one: ReviewProcess) => (await one.ask('GET', 'state')).json.state;

const reviewFileOf = ({ out_dir }: TestReviewConfig) =>
  parseReviewFile(readFileSync(join(out_dir, 'review.json')));

function withLedger<T>(config: TestReviewConfig, look: (ledger: SqliteReviewLedger) => T): T {
  const ledger = new SqliteReviewLedger(join(config.state_dir, 'ledger.sqlite'));
  try {
    return look(ledger);
  } finally {
    ledger.close();
  }
}

describe.each(['before', 'after'] as const)('killed %s the commit of', (moment) => {
  it.each(['deploy', 'announce', 'receive', 'conclude'] as const)('%s', async (method) => {
    const config = reviewConfig(platform);
    const held: Held = { report: null, receipt: null };
    const first = await crashing(config, method, moment);
    expect(await live(first, held)).toBe(method === 'conclude' ? 'delivered' : 'cut off');
    await first.died;
    const sessionId = first.assignment.session_id;
    if (held.receipt) {
      const kept = withLedger(config, (ledger) => ledger.file(sessionId)?.report?.reportBytes);
      expect(kept).toEqual(held.report);
    }
    if (method === 'conclude' && moment === 'after') {
      // It was judged and nothing was written: a new process writes it, and the old verdict stays.
      expect(withLedger(config, (ledger) => ledger.session(sessionId)?.state)).toBe('allowed');
      expect(existsSync(join(config.out_dir, 'review.json'))).toBe(false);
      await (await start(config)).kill('SIGTERM');
      expect(reviewFileOf(config).reportBytes).toEqual(held.report);
      return;
    }
    const second = await start(config);
    expect(second.assignment).toEqual(first.assignment);
    expect(await live(second, held)).toBe('delivered');
    await eventually(async () => (await stateOf(second)) === 'allowed');
    await second.kill('SIGTERM');
    withLedger(config, (ledger) => {
      const moves = ledger.history(sessionId).map(({ to }) => to);
      expect(moves).toEqual(['created', 'prepared', 'deployed', 'announced', 'received', 'allowed']);
    });
    expect(reviewFileOf(config).reportBytes).toEqual(held.report);
  });
});

it('killed between receipt and judgement, loses nothing and judges once', async () => {
  const config = reviewConfig(platform);
  const held: Held = { report: null, receipt: null };
  const hanging = await crashing(config, 'hang');
  expect(await live(hanging, held)).toBe('delivered');
  expect(await stateOf(hanging)).toBe('received');
  expect(existsSync(join(config.out_dir, 'review.json'))).toBe(false);
  await hanging.kill('SIGKILL');
  const restarted = await start(config);
  await eventually(async () => (await stateOf(restarted)) === 'allowed');
  expect(await live(restarted, held)).toBe('delivered');
});
