import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentPackage } from '../../guest/agent/types.ts';
import type { EvaluatorError } from '../../guest/errors.ts';
import { EXIT, exitCodeOf } from '../../guest/process/exit-codes.ts';
import { encodeCanonical, type Json } from '../../guest/wire/canonical.ts';
import { parseMechanism } from '../../guest/wire/mechanism.ts';
import { parsePlan } from '../../guest/wire/plan.ts';
import { parseResult } from '../../guest/wire/result.ts';
import { oraclePackage } from '../agent/oracle-package.ts';
import { verifyAdmitted } from '../run/admission.ts';
import { runtimeImageOf } from '../run/agent-runtime.ts';
import {
  type IssuedRun,
  keep,
  type Local,
  startChallengeProcess,
  startGuest,
  startMachine,
} from '../run/evaluation.ts';
import { processPlace, writeMechanism } from '../run/guest-process.ts';
import { imagePlace } from '../run/image-place.ts';
import { verifyImageTerms } from '../run/image-terms.ts';
import { type LoadedCache, loadAgent, loadCache, verifyEngineReady, withModelAccess } from '../run/inputs.ts';
import { type JournalLine, keepEvent, parseEvent, showEvent } from '../run/journal.ts';
import { withParts } from '../run/lifecycle.ts';
import { HELP, type RunOptions, readOptions } from '../run/options.ts';
import { aborted, awaitJudgement, type RepTimes, type Summary, summarize } from '../run/outcome.ts';
import type { Running } from '../run/process.ts';
import { painter, table, verdictLine, weightLine } from '../run/show.ts';
import { verifyRound, verifyTerms, verifyVariables } from '../run/terms.ts';

/** What the guest process said: the last RESULT line, its journal, its exit code. */
interface GuestWord {
  resultBytes: Buffer | null;
  times: RepTimes[];
  receipt: unknown;
  error: { code: string; message: string } | null;
  exitCode: number | null;
}

const say = ({ options, fail }: Pick<Local, 'options' | 'fail'>, event: JournalLine): void =>
  keepEvent(options.out, fail, event);

async function runGuest(
  local: Local,
  machine: Awaited<ReturnType<typeof startMachine>>,
  issued: IssuedRun,
  failed: Promise<EvaluatorError>,
): Promise<GuestWord> {
  const word: GuestWord = { resultBytes: null, times: [], receipt: null, error: null, exitCode: null };
  const guest = await startGuest(local, machine, issued, {
    onStdout: (line) => {
      if (line.startsWith('RESULT=')) word.resultBytes = Buffer.from(line.slice('RESULT='.length), 'ascii');
    },
    onStderr: (line) => {
      const event = parseEvent(line);
      if (event.event === 'rep') word.times.push(event as unknown as RepTimes);
      if (event.event === 'receipt') word.receipt = event.receipt;
      if (event.event === 'error') word.error = { code: String(event.code), message: String(event.message) };
      say(local, event);
    },
  });
  let failure: EvaluatorError | null = null;
  failed.then((error) => {
    failure = error;
    return guest.stop();
  });
  const exitCode = await guest.exited;
  return failure === null
    ? { ...word, exitCode }
    : { ...word, exitCode: exitCodeOf(failure), error: failure };
}

async function judged(
  local: Local,
  word: GuestWord,
  resultBytes: Buffer,
  issued: IssuedRun,
): Promise<Summary> {
  const { out } = local.options;
  writeFileSync(join(out, 'result.json'), resultBytes);
  if (word.receipt !== null) writeFileSync(join(out, 'receipt.json'), encodeCanonical(word.receipt as Json));
  const result = parseResult(resultBytes);
  const { mechanism } = parseMechanism(readFileSync(local.place.mechanism));
  if (word.exitCode !== 0) {
    return summarize(
      result,
      { state: 'rejected', reason_code: word.error?.code ?? 'run_aborted', score_f64be: null },
      mechanism,
      word.times,
    );
  }
  const judgement = await awaitJudgement(parsePlan(issued.planBytes), issued.runToken);
  return summarize(result, judgement, mechanism, word.times);
}

function print(options: RunOptions, summary: Summary): void {
  if (options.format === 'json') process.stdout.write(`${JSON.stringify(summary)}\n`);
  else if (summary.result) {
    const paint = painter(process.stdout, process.env);
    const lines = [table(summary, paint), weightLine(summary), verdictLine(summary, options.out, paint)];
    process.stdout.write(`${lines.filter((line) => line !== null).join('\n')}\n`);
  }
}

async function evaluate(
  local: Local,
  boot: typeof startMachine,
  failed: Promise<EvaluatorError>,
): Promise<number> {
  const { options } = local;
  const machine = await boot(local);
  if (options.image !== null) {
    const { image_ref, measurement } = machine.entry;
    const message = `the challenge lists compose hash ${measurement.compose_hash} of ${image_ref}`;
    showEvent({ event: 'progress', message });
  }
  const issued = await startChallengeProcess(local, machine);
  const word = await runGuest(local, machine, issued, failed);
  if (word.resultBytes === null) {
    print(options, aborted(word.error?.code ?? 'run_aborted'));
    const why = word.error ? `${word.error.message} [${word.error.code}]` : 'the guest ended without a word';
    process.stderr.write(`evaluator: no RESULT: ${why}\n`);
    // A guest that crashed has judged nothing, whatever Node's code for that is.
    return word.error === null && word.exitCode === EXIT.rejected
      ? EXIT.aborted
      : (word.exitCode ?? EXIT.aborted);
  }
  const summary = await judged(local, word, word.resultBytes, issued);
  print(options, summary);
  if (word.exitCode !== 0) return word.exitCode ?? EXIT.aborted;
  return summary.accepted ? EXIT.accepted : EXIT.rejected;
}

/** An image takes no folder of solutions: its oracle brings them along. */
async function withSolutions(
  { agent, image }: RunOptions,
  { solutions, cache, planned }: LoadedCache,
  given: AgentPackage,
): Promise<AgentPackage> {
  if (image === null || agent !== 'oracle' || solutions === null) return given;
  return oraclePackage(
    solutions,
    planned.map((task) => cache.task(task.task_id)),
  );
}

/**
 * `evaluator run`: simulator, challenge and guest as separate processes, from a plan to a judged RESULT.
 * @param boot the machine that the guest gets.
 * @returns the exit code. @throws EvaluatorError on refused input, before anything is started.
 */
export async function run(argv: readonly string[], boot = startMachine): Promise<number> {
  const options = readOptions(argv, Date.now());
  if (options === null) {
    process.stdout.write(HELP);
    return 0;
  }
  return withParts(options.out, async ({ work, running, fail, failed }) => {
    const given = await loadAgent(options.agent);
    const mechanism = writeMechanism(work, options.offers);
    verifyVariables(options, process.env);
    // Of an image that was named it is read when its guest is made ready.
    if (options.image?.kind !== 'named') verifyTerms(options, mechanism, process.env);
    await verifyAdmitted(options, given.agentHash, Date.now());
    await verifyEngineReady(options, mechanism);
    await verifyImageTerms(options);
    const onProgress = (message: string) => showEvent({ event: 'progress', message });
    const baked = await loadCache(options, work, onProgress);
    const agent = await withSolutions(options, baked, given);
    const onLog: Local['onLog'] = (name, line) =>
      say({ options, fail }, { event: 'log', process: name, line });
    const { image: choice, engineSocket } = options;
    const onPart = (part: Running) => keep({ running, fail }, part);
    const place =
      choice === null
        ? processPlace(options, baked, mechanism)
        : await imagePlace({ choice, engineSocket, loaded: baked, work, onPart, onLog, onProgress });
    verifyTerms(options, place.mechanism, process.env);
    verifyRound(options, readFileSync(place.mechanism), baked.planned.length);
    const loaded = withModelAccess(baked, place.mechanism);
    const runtimeImage = await runtimeImageOf(agent, loaded.planned, engineSocket, onProgress);
    const local = { options, agent, runtimeImage, loaded, place, work, running, fail, onLog };
    return await evaluate(local, boot, failed);
  });
}
