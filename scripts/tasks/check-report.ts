import { trackKind } from '../../guest/consensus/track-kind.ts';
import type { EvaluatorError } from '../../guest/errors.ts';
import type { Judged } from './check-life.ts';
import type { TaskCheck } from './check-task.ts';

const seconds = (ms: number) => Math.round(ms / 100) / 10;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0;
}

function shownReps(reps: readonly Judged[]) {
  return reps.map(({ mode, outcome, passed, agentMs, testsMs }) => ({
    verifier: mode,
    outcome,
    passed,
    agent_seconds: seconds(agentMs),
    tests_seconds: seconds(testsMs),
  }));
}

/** One check as `bake --check --json` prints it. */
export function checkJson(check: TaskCheck) {
  return {
    task_id: check.taskId,
    image: check.image,
    verdict: check.verdict,
    verifier: check.mode,
    artifact_paths: check.artifactPaths,
    evidence: check.evidence,
    reason: check.reason,
    stricter: shownReps(check.stricter),
    oracle: shownReps(check.oracle),
    nop: shownReps(check.nop),
  };
}

/** The mode, and why it is not a stricter one. */
function modes({ mode, stricter }: TaskCheck): string {
  const others = stricter.map((one) => `${one.mode}: ${one.outcome}`);
  return others.length === 0 ? `${mode}` : `${mode} (${others.join(', ')})`;
}

/** What proves that a task's tests ran, in words. */
function proof({ evidence, mode, track }: TaskCheck): string {
  if (mode === null) return '';
  if (trackKind(track) !== 'terminal-bench') return `${track}, by its ground truth`;
  if (evidence.kind === 'none') return 'no proof: whoever writes the reward file decides';
  return `${evidence.passed} tests`;
}

/** A line for each task: verdict, mode, tests counted, median seconds of the oracle and of its tests, image. */
export function checkLines(checks: readonly TaskCheck[], unbuilt: readonly EvaluatorError[]): string[] {
  const lines = checks.map((check) => {
    const last = check.oracle.filter(({ mode }) => mode === check.oracle.at(-1)?.mode);
    const agent = seconds(median(last.map(({ agentMs }) => agentMs)));
    const tests = seconds(median(last.map(({ testsMs }) => testsMs)));
    const head = `${check.taskId}  ${check.verdict}`;
    const image = check.image.replace(/^(.*sha256:.{12}).*$/, '$1');
    if (check.mode === null) return `${head}  ${check.reason}`;
    return `${head}  ${modes(check)}  ${proof(check)}  oracle ${agent} s, its tests ${tests} s  ${image}`;
  });
  return [...lines, ...unbuilt.map(({ code, message }) => `not baked  ${code}: ${message.split('\n')[0]}`)];
}
