import { setTimeout as sleep } from 'node:timers/promises';
import { type Eligibility, eligibilityOf } from '../../challenge/eligible.ts';
import { trackKind } from '../../guest/consensus/track-kind.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { askChallenge, SMALL_REPLY } from '../../guest/net/challenge-client.ts';
import { decodeF64be } from '../../guest/wire/f64.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import type { Mechanism } from '../../guest/wire/mechanism.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import type { Result } from '../../guest/wire/result.ts';
import type { RepRecord } from '../../guest/wire/score-record.ts';

const JUDGED_WITHIN_MS = 60_000;
const POLL_MS = 100;

/** The challenge's word on a run. */
export interface Judgement {
  state: string;
  reason_code: string | null;
  /** Null unless accepted. */
  score_f64be: string | null;
}

/** Asks until the challenge has judged. @throws judgement_late. */
export async function awaitJudgement(plan: EvalPlan, token: string): Promise<Judgement> {
  const url = plan.result.url.replace(/\/result$/, '');
  for (let waited = 0; waited < JUDGED_WITHIN_MS; waited += POLL_MS) {
    const reply = await askChallenge({
      method: 'GET',
      url,
      token,
      caPem: plan.server_ca_pem,
      body: null,
      maxReplyBytes: SMALL_REPLY,
    });
    const body = parseForeignJson(reply.body, { maxBytes: SMALL_REPLY, maxDepth: 4 }) as Judgement;
    if (body.state === 'accepted' || body.state === 'rejected') return body;
    await sleep(POLL_MS);
  }
  throw new EvaluatorError(
    'judgement_late',
    'the challenge has a receipt but no judgement yet; see journal.jsonl in --out',
  );
}

/** What a guest's journal adds to a rep of the record. */
export interface RepTimes {
  task_id: string;
  rep: number;
  overhead_ms: number;
}

/** The object that `run --json` prints. */
export interface Summary {
  accepted: boolean;
  reason_code: string | null;
  /** Of a behavioural track the challenge's figure: the record has none. */
  score: number | null;
  /** Whether the score may carry weight; null: it was not accepted. */
  eligible: boolean | null;
  /** Null where it may, or was not accepted. */
  ineligible_because: Eligibility['ineligibleBecause'];
  /** The least score of the track that may; null: the track has none. */
  cut: number | null;
  tasks: {
    task_id: string;
    verdict: string | null;
    score: number | null;
    reps: {
      outcome: string;
      failure: string | null;
      /** Of terminal-bench; null: the rep failed. */
      reward?: number | null;
      /** Of a behavioural track. */
      decision?: string | null;
      /** Of repositories: F2. */
      f2?: number | null;
      wall_ms: number;
      cpu_ms: number;
      memory_peak_bytes: number;
      overhead_ms: number | null;
    }[];
  }[];
  /** The RESULT, as in result.json; null when there is none. */
  result: Result | null;
}

const score = (f64be: string | null) => (f64be === null ? null : decodeF64be(f64be));

type Figure = Pick<Summary['tasks'][number]['reps'][number], 'reward' | 'decision' | 'f2'>;

/** A rep's value under the name that its track has for it. */
function figureOf(track: string, { value }: RepRecord): Figure {
  const kind = trackKind(track);
  if (kind === 'behavioural') return { decision: value && 'verdict' in value ? value.verdict : null };
  if (kind === 'repositories')
    return { f2: value && 'score_f64be' in value ? decodeF64be(value.score_f64be) : null };
  return { reward: value && 'reward_f64be' in value ? decodeF64be(value.reward_f64be) : null };
}

/** A finished run, for people and programs. @param mechanism the one that it was judged under. */
export function summarize(
  result: Result,
  judgement: Judgement,
  mechanism: Mechanism,
  times: readonly RepTimes[],
): Summary {
  const { score_record: record } = result;
  const scoreF64be = record.final.score_f64be ?? judgement.score_f64be;
  const accepted = judgement.state === 'accepted';
  const weighed = accepted && scoreF64be !== null ? eligibilityOf(record, scoreF64be, mechanism) : null;
  const overhead = new Map(times.map((entry) => [`${entry.task_id}#${entry.rep}`, entry.overhead_ms]));
  return {
    accepted,
    reason_code: judgement.reason_code,
    score: score(scoreF64be),
    eligible: weighed && weighed.ineligibleBecause === null,
    ineligible_because: weighed?.ineligibleBecause ?? null,
    cut: weighed?.cut ?? null,
    tasks: result.score_record.tasks.map((task) => ({
      task_id: task.task_id,
      verdict: task.verdict,
      score: score(task.score_f64be),
      reps: task.reps.map((rep) => ({
        outcome: rep.outcome,
        failure: rep.failure,
        ...figureOf(result.score_record.track, rep),
        wall_ms: rep.wall_ms,
        cpu_ms: rep.cpu_ms,
        memory_peak_bytes: rep.memory_peak_bytes,
        overhead_ms: overhead.get(`${task.task_id}#${rep.rep}`) ?? null,
      })),
    })),
    result,
  };
}

/** A run that ended without a RESULT. */
export function aborted(code: string): Summary {
  return {
    accepted: false,
    reason_code: code,
    score: null,
    eligible: null,
    ineligible_because: null,
    cut: null,
    tasks: [],
    result: null,
  };
}
