import { z } from 'zod';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import { askChallenge, SMALL_REPLY } from '../../guest/net/challenge-client.ts';
import { EXIT } from '../../guest/process/exit-codes.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { f64be, parseSchema } from '../../guest/wire/scalars.ts';
import type { Awaited } from './awaited.ts';

const word = z.string().regex(/^[a-z0-9_]{1,64}$/);
const stateReply = z.looseObject({
  state: word,
  reason_code: word.nullable(),
  score_f64be: f64be.nullish(),
});

/** The challenge's word on a run or a session. */
export interface Word {
  state: string;
  reasonCode: string | null;
  scoreF64be: string | null;
}

/** States in which a challenge still waits for the guest, or judges. */
const OPEN: ReadonlySet<string> = new Set([
  'prepared',
  'granted',
  'started',
  'received',
  'parked',
  'deployed',
  'announced',
]);
const EXITS: Readonly<Record<Awaited['role'], Readonly<Record<string, number>>>> = {
  eval: { accepted: EXIT.accepted, rejected: EXIT.rejected },
  review: {
    allowed: EXIT.accepted,
    rejected: EXIT.rejected,
    escalated: EXIT.rejected,
    trust_failed: EXIT.verificationFailed,
  },
};

/** True while the outcome is still to come. */
export function isOpen({ state }: Word): boolean {
  return OPEN.has(state);
}

/** The exit code of a judged run or session. @throws deploy_no_result when it was closed without a judgement. */
export function exitCodeOfWord(role: Awaited['role'], { state, reasonCode }: Word): number {
  const exits = EXITS[role];
  const code = Object.hasOwn(exits, state) ? exits[state] : undefined;
  if (code !== undefined) return code;
  throw new EvaluatorError(
    'deploy_no_result',
    `the challenge closed it as ${state}${reasonCode === null ? '' : ` (${reasonCode})`} without a judgement`,
  );
}

/**
 * Asks the challenge once.
 * @returns null when it could not answer now.
 * @throws deploy_outcome_unknown when it will not answer this token.
 */
export async function askForWord({ url, token, caPem }: Awaited): Promise<Word | null> {
  try {
    const { status, body } = await askChallenge({
      method: 'GET',
      url,
      token,
      caPem,
      body: null,
      maxReplyBytes: SMALL_REPLY,
    });
    if (status === 429 || status >= 500) return null;
    if (status !== 200)
      throw new EvaluatorError('deploy_outcome_unknown', `GET ${url}: the challenge answers with ${status}`);
    const json = parseForeignJson(body, { maxBytes: SMALL_REPLY, maxDepth: 4 });
    const reply = parseSchema(stateReply, json, 'state');
    return { state: reply.state, reasonCode: reply.reason_code, scoreF64be: reply.score_f64be ?? null };
  } catch (error) {
    if (isEvaluatorError(error, 'challenge_unreachable')) return null;
    throw error;
  }
}
