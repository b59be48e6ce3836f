import { trackKind } from '../../guest/consensus/track-kind.ts';
import type { Summary } from './outcome.ts';

type Paint = (text: string, tone: 'good' | 'bad' | 'dim') => string;

const TONES = { good: 32, bad: 31, dim: 2 } as const;

/** Colours on a terminal, unless NO_COLOR is set (no-color.org). */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  if (!stream.isTTY || (env.NO_COLOR ?? '') !== '') return (text) => text;
  return (text, tone) => `\u001b[${TONES[tone]}m${text}\u001b[0m`;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const mebibytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;

type Rep = Summary['tasks'][number]['reps'][number];

function repMark(rep: Rep): string {
  if (rep.outcome === 'failed') return rep.failure ?? 'failed';
  if (rep.decision) return rep.decision;
  const figure = rep.reward ?? rep.f2 ?? null;
  return figure === null ? 'done' : String(Math.round(figure * 1000) / 1000);
}

/** Whether a behavioural verdict is right is not for this side to know. */
function toneOf({ verdict, score }: Summary['tasks'][number]): 'good' | 'bad' | 'dim' {
  if (verdict === null) return score ? 'good' : 'bad';
  return verdict === 'PASS' ? 'good' : verdict === 'FAIL' ? 'bad' : 'dim';
}

/** One line a task: verdict or score, each rep's value or failure, the largest figures of its reps. */
export function table(summary: Summary, paint: Paint): string {
  const width = Math.max(4, ...summary.tasks.map((task) => task.task_id.length));
  const reps = summary.tasks.map((task) => task.reps.map(repMark).join('  '));
  const repsWidth = Math.max(4, ...reps.map((text) => text.length));
  const head = `${'task'.padEnd(width)}  verdict  ${'reps'.padEnd(repsWidth)}  wall      cpu       memory`;
  const rows = summary.tasks.map((task, i) => {
    const most = (pick: (rep: Rep) => number) => Math.max(...task.reps.map(pick));
    const f2 = task.verdict === null && task.score !== null ? task.score.toFixed(4) : null;
    const verdict = (task.verdict ?? f2 ?? 'none').padEnd(7);
    return [
      task.task_id.padEnd(width),
      paint(verdict, toneOf(task)),
      (reps[i] ?? '').padEnd(repsWidth),
      seconds(most((rep) => rep.wall_ms)).padEnd(8),
      seconds(most((rep) => rep.cpu_ms)).padEnd(8),
      mebibytes(most((rep) => rep.memory_peak_bytes)),
    ].join('  ');
  });
  return [paint(head, 'dim'), ...rows].join('\n');
}

function countedTasks({ tasks, result }: Summary): string {
  const kind = result && trackKind(result.score_record.track);
  if (kind === 'behavioural') return `MCC over ${tasks.length} tasks, computed by the challenge`;
  if (kind === 'repositories') return `the mean F2 of ${tasks.length} tasks`;
  const passed = tasks.filter((task) => task.verdict === 'PASS').length;
  return `${passed} of ${tasks.length} tasks passed`;
}

/** Of a track with a cut: whether an accepted score may carry weight; null where there is nothing to say. */
export function weightLine({ eligible, ineligible_because: because, cut }: Summary): string | null {
  if (eligible === null || cut === null) return null;
  if (eligible) return `eligible for weight: at or above the cut of ${cut}`;
  const why =
    because === 'below_cut' ? `below the cut of ${cut}` : 'a calibration run weighs nothing (--ranked)';
  return `not eligible for weight: ${why}`;
}

/** The last line: what the challenge said. */
export function verdictLine(summary: Summary, out: string, paint: Paint): string {
  const counted = `score ${summary.score === null ? 'none' : summary.score.toFixed(4)}, ${countedTasks(summary)}`;
  return summary.accepted
    ? `${paint('accepted', 'good')}: ${counted}; RESULT and receipt in ${out}`
    : `${paint('rejected', 'bad')}: ${summary.reason_code ?? 'no reason given'}; RESULT in ${out}`;
}

/** One line of progress for a person, from one event of the guest's journal; null for what need not be shown. */
export function progressLine(event: Record<string, unknown>, paint: Paint): string | null {
  if (event.event === 'stage') return event.mark === 'begin' ? paint(`${event.stage} ...`, 'dim') : null;
  if (event.event === 'rep') {
    const value =
      event.verdict ?? (event.score === undefined ? `reward ${event.reward}` : `F2 ${event.score}`);
    const outcome = event.outcome === 'completed' ? String(value) : `failed: ${event.failure}`;
    const isGood = event.reward === 1 || (event.outcome === 'completed' && event.reward === undefined);
    const tone = isGood ? 'good' : 'bad';
    return `  ${event.task_id} rep ${event.rep}: ${paint(outcome, tone)} in ${seconds(Number(event.wall_ms))}`;
  }
  if (event.event === 'progress') return paint(String(event.message), 'dim');
  if (event.event === 'swept')
    return paint(`swept ${event.objects} objects that an earlier run had left`, 'dim');
  if (event.event === 'error') return `${paint(String(event.code), 'bad')}: ${event.message}`;
  return null;
}
