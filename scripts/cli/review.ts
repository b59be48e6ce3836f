import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EvaluatorError } from '../../guest/errors.ts';
import { EXIT, exitCodeOf } from '../../guest/process/exit-codes.ts';
import { buildCorpus } from '../review/corpus.ts';
import { HELP, type ReviewCliOptions, readReviewOptions } from '../review/options.ts';
import { awaitVerdict, type ReviewSummary, summarizeReview, withoutVerdict } from '../review/outcome.ts';
import {
  type IssuedReview,
  type LocalReview,
  type ReviewMachine,
  startReviewChallenge,
  startReviewGuest,
  startReviewMachine,
} from '../review/parts.ts';
import { readRevocation, revokeByFile } from '../review/revoke.ts';
import { bundleRules } from '../review/rules.ts';
import { reviewText } from '../review/show.ts';
import { loadAgent } from '../run/inputs.ts';
import { keepEvent, parseEvent, showEvent } from '../run/journal.ts';
import { type Parts, withParts } from '../run/lifecycle.ts';
import { painter } from '../run/show.ts';

/** How the guest process ended. */
interface GuestEnd {
  exitCode: number | null;
  error: { code: string; message: string } | null;
}

async function runGuest(
  local: LocalReview,
  machine: ReviewMachine,
  issued: IssuedReview,
  { failed, fail }: Parts,
): Promise<GuestEnd> {
  let error: GuestEnd['error'] = null;
  const guest = startReviewGuest(local, machine, issued, {
    onStdout: () => undefined,
    onStderr: (line) => {
      const event = parseEvent(line);
      if (event.event === 'error') error = { code: String(event.code), message: String(event.message) };
      keepEvent(local.options.out, fail, event);
    },
  });
  let failure: EvaluatorError | null = null;
  failed.then((cause) => {
    failure = cause;
    return guest.stop();
  });
  const exitCode = await guest.exited;
  return failure === null ? { exitCode, error } : { exitCode: exitCodeOf(failure), error: failure };
}

/** The summary and the exit code of a review whose guest has ended. */
async function outcomeOf(
  local: LocalReview,
  { assignment, token }: IssuedReview,
  guest: GuestEnd,
): Promise<{ summary: ReviewSummary; exitCode: number }> {
  const { agentHash } = local.agent;
  if (guest.exitCode !== EXIT.accepted) {
    const code = guest.error?.code ?? 'run_aborted';
    return { summary: withoutVerdict(agentHash, code), exitCode: guest.exitCode ?? EXIT.aborted };
  }
  const { state, reason_code: reason } = await awaitVerdict(assignment, token);
  if (state === 'trust_failed') {
    const summary = withoutVerdict(agentHash, reason ?? 'verifier_failed');
    return { summary, exitCode: EXIT.verificationFailed };
  }
  const summary = summarizeReview(readFileSync(join(local.options.out, 'report.json')));
  return { summary, exitCode: state === 'allowed' ? EXIT.accepted : EXIT.rejected };
}

function print({ format, out }: ReviewCliOptions, summary: ReviewSummary): void {
  const text =
    format === 'json'
      ? `${JSON.stringify(summary)}\n`
      : reviewText(summary, out, painter(process.stdout, process.env));
  process.stdout.write(text);
}

/**
 * `evaluator review`: simulator, challenge and review guest as separate processes, from an assignment to a
 * judged report.
 * @returns the exit code. @throws EvaluatorError on refused input, before anything is started.
 */
export async function review(argv: readonly string[]): Promise<number> {
  const revocation = readRevocation(argv);
  if (revocation !== null) {
    process.stdout.write(revokeByFile(revocation, Date.now()));
    return 0;
  }
  const options = readReviewOptions(argv, process.env, Date.now());
  if (options === null) {
    process.stdout.write(HELP);
    return 0;
  }
  return withParts(options.out, async (parts) => {
    const { fail } = parts;
    const agent = await loadAgent(options.agent);
    const rules = bundleRules(options.rules);
    const corpus = await buildCorpus(options.corpus);
    if (options.access === null) {
      const message =
        'no model is asked: name --model-endpoint and set OPENROUTER_API_KEY; the verdict is escalate at best';
      showEvent({ event: 'progress', message });
    }
    const onLog: LocalReview['onLog'] = (name, line) =>
      keepEvent(options.out, fail, { event: 'log', process: name, line });
    const local: LocalReview = { ...parts, options, agent, rules, corpus, onLog };
    const machine = await startReviewMachine(local);
    const issued = await startReviewChallenge(local, machine);
    const guest = await runGuest(local, machine, issued, parts);
    const { summary, exitCode } = await outcomeOf(local, issued, guest);
    print(options, summary);
    if (guest.error) process.stderr.write(`evaluator: ${guest.error.message} [${guest.error.code}]\n`);
    return exitCode;
  });
}
