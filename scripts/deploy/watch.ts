import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import { printable } from '../../guest/wire/scalars.ts';
import type { Cloud } from './cloud.ts';
import { type GuestEvent, LogReader } from './log-lines.ts';
import type { Clock, Order } from './order.ts';
import { isOpen, type Word } from './verdict.ts';

const POLL_MS = 5_000;
/** Of a VM that will not run its guest any more. */
const ENDED = /^(?:stopped|exited|error|failed|removed|terminated|shutdown)$/i;

export interface WatchDeps {
  cloud: Cloud;
  /** Null: the challenge could not answer now. */
  ask: () => Promise<Word | null>;
  clock: Clock;
  show: (event: GuestEvent | { event: 'progress'; message: string }) => void;
  signal: AbortSignal;
}

export interface Watched {
  word: Word;
  /** The bytes after `RESULT=` in the public log; null when it had none. Not checked. */
  resultLine: Buffer | null;
}

/** What the log has said so far. */
class Progress {
  readonly log = new LogReader();
  id: string | null = null;
  last = 'no stage';
  failure: string | null = null;
  #trouble = '';
  readonly #show: WatchDeps['show'];

  constructor(show: WatchDeps['show']) {
    this.#show = show;
  }

  follow(log: Buffer): void {
    for (const event of this.log.read(log)) {
      if (event.event === 'stage') this.last = `stage ${event.stage}, ${event.mark}`;
      if (event.event === 'error') this.failure = `${event.message} [${event.code}]`;
      this.#show(event);
    }
  }

  /** The cloud could not answer: said once for each reason, as a look is repeated anyway. */
  trouble(error: EvaluatorError): void {
    if (error.message !== this.#trouble) this.#show({ event: 'progress', message: error.message });
    this.#trouble = error.message;
  }
}

/** What the cloud shows of the VM. @throws deploy_vm_failed. */
async function look(order: Order, progress: Progress, cloud: Cloud): Promise<void> {
  progress.id ??= (await cloud.list()).find(({ name }) => name === order.name)?.id ?? null;
  if (progress.id === null) return;
  const log = await cloud.log(progress.id, order.composed.imageRef);
  if (log) progress.follow(log);
  const { status, bootError } = await cloud.state(progress.id);
  if (bootError === null && !ENDED.test(status)) return;
  const why = bootError === null ? '' : `, ${printable(bootError)}`;
  throw new EvaluatorError(
    'deploy_vm_failed',
    `VM: ${printable(status)}${why}; in the log: ${progress.last}`,
  );
}

/** A look that may fail: the cloud's troubles pass, or the timeout ends them. */
async function tolerant(progress: Progress, looking: Promise<void>): Promise<EvaluatorError | null> {
  try {
    await looking;
    return null;
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    if (error.code === 'deploy_vm_failed' || error.code === 'cloud_unauthorized') return error;
    progress.trouble(error);
    return null;
  }
}

/**
 * Follows a created VM until the challenge has judged. The log is shown, never believed: it may end a
 * deployment early, and it cannot make one accepted.
 * @throws deploy_guest_failed, deploy_vm_failed, deploy_timeout, deploy_outcome_unknown, cloud_unauthorized, and
 *   the signal's reason.
 */
export async function watch(order: Order, deps: WatchDeps): Promise<Watched> {
  const { cloud, ask, clock, show, signal } = deps;
  const progress = new Progress(show);
  const until = clock.nowMs() + order.timeoutMs;
  for (;;) {
    signal.throwIfAborted();
    const ended = await tolerant(progress, look(order, progress, cloud));
    // Asked last: what the guest delivered before it ended counts.
    const word = await ask();
    if (word && !isOpen(word)) {
      // What came between the look and the word is in the log by now.
      await tolerant(progress, look(order, progress, cloud));
      return { word, resultLine: progress.log.result };
    }
    const isBeingJudged = word?.state === 'received' || word?.state === 'parked';
    if (!isBeingJudged && progress.failure !== null)
      throw new EvaluatorError('deploy_guest_failed', `guest: ${progress.failure}`);
    if (!isBeingJudged && ended) throw ended;
    if (clock.nowMs() >= until)
      throw new EvaluatorError(
        'deploy_timeout',
        `no judgement within ${order.timeoutMs / 60_000} minutes (--timeout); in the log: ${progress.last}`,
      );
    await clock.sleep(POLL_MS, signal);
  }
}
