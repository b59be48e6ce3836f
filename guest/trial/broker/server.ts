import pLimit from 'p-limit';
import type { Engine, ExecPipe } from '../../engine/port.ts';
import { isEvaluatorError } from '../../errors.ts';
import type { Clock } from '../clock.ts';
import type { RepFailed } from '../faults.ts';
import { type BrokerTarget, runCommand } from './command.ts';
import { copyBetween } from './copy.ts';
import { type Line, LineSplitter } from './lines.ts';
import {
  type Answer,
  type Asked,
  answerLine,
  type ExecCall,
  MAX_CALL_BYTES,
  parseCall,
  refusal,
  type TransferCall,
} from './protocol.ts';
import { untilStopped } from './until-stopped.ts';

/** Of one rep; an agent that loops all day has fewer. */
const MAX_CALLS = 10_000;
/** How many calls are worked on at once, their answers being sent included. */
const AT_ONCE = 4;
/** How many more are taken in; beyond, nothing is read until one is answered. */
const MAX_WAITING = 60;
const MAX_TRANSFER_BYTES = 2 * 1024 ** 3;
/** What the engine fails at, and what a control then finds, cost the machine more than the agent. */
const MAX_FAILURES = 16;
/** Connection numbers of the bridge. */
const ADDRESS = /^(\d{1,9}) /;
const ADDRESS_BYTES = 10;

export interface BrokerDeps {
  engine: Engine;
  clock: Clock;
  /** The rep's own task container; a call cannot name another. */
  target: BrokerTarget;
  /** The container of the agent's sandbox, where transfers start or end. */
  sandboxId: string;
  /**
   * What an engine call that has failed does to the rep (spec/02): the rep's failure, when a control container
   * passes. @throws what ends the run, when it does not.
   */
  judgeFailure: (error: unknown) => Promise<RepFailed>;
  /** Told of what ends the rep. */
  onFault: (error: unknown) => void;
}

/** An answer's failure that says nothing about the engine: the container has ended, or the path is gone. */
const isGone = (error: unknown) =>
  isEvaluatorError(error, 'engine_not_found') || isEvaluatorError(error, 'engine_conflict');

/**
 * The guest's end of a broker: reads the calls of one rep's agent and does them in that rep's task container
 * alone. Everything that is read is hostile; what it may cost is bounded.
 */
export class BrokerServer {
  readonly #deps: BrokerDeps;
  readonly #lines = new LineSplitter(MAX_CALL_BYTES + ADDRESS_BYTES, (line) => this.#arrived(line));
  readonly #unread: Line[] = [];
  readonly #atOnce = pLimit(AT_ONCE);
  /** By connection and id: what `cancel` ends. */
  readonly #running = new Map<string, AbortController>();
  readonly #stopped = new AbortController();
  #pipe: ExecPipe | null = null;
  #calls = 0;
  #waiting = 0;
  #failures = 0;
  readonly #allowance = { bytes: MAX_TRANSFER_BYTES };

  constructor(deps: BrokerDeps) {
    this.#deps = { ...deps, engine: untilStopped(deps.engine, this.#stopped.signal) };
  }

  /** Takes the next bytes that the bridge sent. */
  receive(bytes: Buffer): void {
    if (!this.#stopped.signal.aborted) this.#lines.write(bytes);
  }

  /** From now on, answers go to `pipe`. */
  attach(pipe: ExecPipe): void {
    this.#pipe = pipe;
  }

  /** Ends every call; the engine is asked for nothing more. The agent's commands end with their container. */
  stop(): void {
    this.#stopped.abort();
    for (const call of this.#running.values()) call.abort();
    this.#pipe?.detach();
  }

  #arrived(line: Line): void {
    this.#calls++;
    this.#waiting++;
    this.#regulate();
    if (this.#unread.push(line) === 1) setImmediate(() => this.#readNext());
  }

  /** One line a turn of the event loop: several large ones would make the budgets' timers late. */
  #readNext(): void {
    const line = this.#unread.shift();
    if (line === undefined || this.#stopped.signal.aborted) return;
    this.#take(line);
    if (this.#unread.length > 0) setImmediate(() => this.#readNext());
  }

  #take(line: Line): void {
    const address = line === null ? null : ADDRESS.exec(line.toString('latin1', 0, ADDRESS_BYTES));
    const from = address?.[1] ?? '0';
    const asked =
      line === null || address === null
        ? { id: null, problem: `a line that is no call, or longer than ${MAX_CALL_BYTES} bytes` }
        : parseCall(line.subarray(address[0].length));
    this.#atOnce(this.#prepare(from, asked))
      .catch(this.#deps.onFault)
      .finally(() => {
        this.#waiting--;
        this.#regulate();
      });
  }

  /** Beyond what is waited for, and for good beyond what any agent needs, nothing is read. */
  #regulate(): void {
    if (this.#waiting >= MAX_WAITING || this.#calls >= 2 * MAX_CALLS) this.#pipe?.pause();
    else this.#pipe?.resume();
  }

  /** What is to be done for a line when its turn comes; a `cancel` does its part at once. */
  #prepare(from: string, asked: Asked): () => Promise<void> {
    if (!('call' in asked)) return () => this.#send(from, asked.id, refusal('malformed', asked.problem));
    const { call } = asked;
    const key = `${from} ${call.id}`;
    if (call.call === 'cancel') {
      this.#running.get(`${from} ${call.of}`)?.abort();
      return () => this.#send(from, call.id, { bytes: 0 });
    }
    if (this.#running.has(key))
      return () => this.#send(from, call.id, refusal('malformed', 'id: a call of this id is going on'));
    const ending = new AbortController();
    this.#running.set(key, ending);
    return async () => {
      if (this.#stopped.signal.aborted) return;
      const answer = await this.#do(call, ending.signal).finally(() => this.#running.delete(key));
      await this.#send(from, call.id, answer);
    };
  }

  async #send(to: string, id: number | null, answer: Answer): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    await this.#pipe?.write(Buffer.from(`${to} ${answerLine(id, answer)}\n`));
  }

  async #do(call: ExecCall | TransferCall, signal: AbortSignal): Promise<Answer> {
    if (this.#calls > MAX_CALLS) return refusal('limit', `more than ${MAX_CALLS} calls`);
    if (signal.aborted) return refusal('cancelled', 'the call was ended');
    try {
      return call.call === 'exec'
        ? await runCommand(this.#deps, this.#deps.target, call, signal)
        : await this.#transfer(call, signal);
    } catch (error) {
      return await this.#failed(error);
    }
  }

  async #transfer(call: TransferCall, signal: AbortSignal): Promise<Answer> {
    const { engine, target, sandboxId } = this.#deps;
    const [from, to] =
      call.call === 'upload' ? [sandboxId, target.containerId] : [target.containerId, sandboxId];
    return copyBetween(engine, { from, to }, call, this.#allowance, signal);
  }

  /** An engine that says no to a call may have been made to; one that says nothing has failed the rep, or the run. */
  async #failed(error: unknown): Promise<Answer> {
    if (this.#stopped.signal.aborted) return refusal('cancelled', 'the call was ended');
    if (isGone(error)) return refusal('failed', 'the container, or the path, is gone');
    this.#failures++;
    const failure = await this.#deps.judgeFailure(error);
    if (!isEvaluatorError(error, 'engine_error') || this.#failures > MAX_FAILURES) throw failure;
    return refusal('failed', 'the engine could not do it');
  }
}
