import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, SIGNAL_EXIT } from '../../guest/stages/exit-codes.ts';
import { encodeCanonical, type Json } from '../../guest/wire/canonical.ts';
import { parsePlan } from '../../guest/wire/plan.ts';
import { parseResult } from '../../guest/wire/result.ts';
import { type Local, makeWork, startChallengeProcess, startGuest, startMachine } from '../run/evaluation.ts';
import { loadAgent, loadCache } from '../run/inputs.ts';
import { HELP, type RunOptions, readOptions } from '../run/options.ts';
import { aborted, awaitJudgement, type RepTimes, type Summary, summarize } from '../run/outcome.ts';
import { painter, progressLine, table, verdictLine } from '../run/show.ts';

/** What the guest process said: the last RESULT line, its journal, its exit code. */
interface GuestWord {
  resultBytes: Buffer | null;
  times: RepTimes[];
  receipt: unknown;
  error: { code: string; message: string } | null;
  exitCode: number | null;
}

function say(options: RunOptions, event: Record<string, unknown>): void {
  if (!process.stderr.isTTY) process.stderr.write(`${JSON.stringify(event)}\n`);
  else {
    const line = progressLine(event, painter(process.stderr, process.env));
    if (line !== null) process.stderr.write(`${line}\n`);
  }
  appendFileSync(join(options.out, 'journal.jsonl'), `${JSON.stringify(event)}\n`);
}

async function runGuest(local: Local, machine: Awaited<ReturnType<typeof startMachine>>): Promise<GuestWord> {
  const word: GuestWord = { resultBytes: null, times: [], receipt: null, error: null, exitCode: null };
  const guest = startGuest(local, machine, {
    onStdout: (line) => {
      if (line.startsWith('RESULT=')) word.resultBytes = Buffer.from(line.slice('RESULT='.length), 'ascii');
    },
    onStderr: (line) => {
      let event: Record<string, unknown>;
      try {
        event = JSON.parse(line) as Record<string, unknown>;
      } catch {
        event = { event: 'log', process: 'guest', line };
      }
      if (event.event === 'rep') word.times.push(event as unknown as RepTimes);
      if (event.event === 'receipt') word.receipt = event.receipt;
      if (event.event === 'error') word.error = { code: String(event.code), message: String(event.message) };
      say(local.options, event);
    },
  });
  word.exitCode = await guest.exited;
  return word;
}

async function judged(local: Local, word: GuestWord, resultBytes: Buffer): Promise<Summary> {
  const { out } = local.options;
  writeFileSync(join(out, 'result.json'), resultBytes);
  if (word.receipt !== null) writeFileSync(join(out, 'receipt.json'), encodeCanonical(word.receipt as Json));
  const result = parseResult(resultBytes);
  if (word.exitCode !== 0) {
    return summarize(
      result,
      { state: 'rejected', reason_code: word.error?.code ?? 'run_aborted' },
      word.times,
    );
  }
  const plan = parsePlan(readFileSync(join(out, 'plan.json')));
  const token = readFileSync(join(out, 'run-token'), 'ascii');
  return summarize(result, await awaitJudgement(plan, token), word.times);
}

function print(options: RunOptions, summary: Summary): void {
  if (options.format === 'json') process.stdout.write(`${JSON.stringify(summary)}\n`);
  else if (summary.result) {
    const paint = painter(process.stdout, process.env);
    process.stdout.write(`${table(summary, paint)}\n${verdictLine(summary, options.out, paint)}\n`);
  }
}

async function evaluate(local: Local): Promise<number> {
  const { options } = local;
  const machine = await startMachine(local);
  await startChallengeProcess(local, machine);
  const word = await runGuest(local, machine);
  if (word.resultBytes === null) {
    print(options, aborted(word.error?.code ?? 'run_aborted'));
    const why = word.error ? `${word.error.message} [${word.error.code}]` : 'the guest ended without a word';
    process.stderr.write(`evaluator: no RESULT: ${why}\n`);
    return word.exitCode ?? EXIT.aborted;
  }
  const summary = await judged(local, word, word.resultBytes);
  print(options, summary);
  if (word.exitCode !== 0) return word.exitCode ?? EXIT.aborted;
  return summary.accepted ? EXIT.accepted : EXIT.rejected;
}

/**
 * `evaluator run`: simulator, challenge and guest as separate processes, from a plan to a judged RESULT.
 * @returns the exit code. @throws EvaluatorError on refused input, before anything is started.
 */
export async function run(argv: readonly string[]): Promise<number> {
  const options = readOptions(argv, Date.now());
  if (options === null) {
    process.stdout.write(HELP);
    return 0;
  }
  const agent = await loadAgent(options.agent);
  const { work, remove } = makeWork();
  const local: Local = {
    options,
    agent,
    loaded: await loadCache(options, work, (message) => process.stderr.write(`${message}\n`)),
    work,
    running: [],
    onLog: (name, line) => say(options, { event: 'log', process: name, line }),
  };
  mkdirSync(options.out, { recursive: true });
  const stopAll = () => Promise.all(local.running.toReversed().map((part) => part.stop()));
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => {
      stopAll().finally(() => {
        remove();
        process.exit(SIGNAL_EXIT[name]);
      });
    });
  }
  try {
    return await evaluate(local);
  } finally {
    await stopAll();
    remove();
  }
}
