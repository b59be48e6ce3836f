import type { CgroupReading } from '../engine/cgroup.ts';
import type { ContainerState } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import { DiskWatch } from './disk-watch.ts';
import type { EndCause, Observation, Reading } from './judge.ts';
import type { Sandbox } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';

const MIN_POLL_MS = 20;
const MAX_POLL_MS = 1000;
/** How often the engine is asked whether the exec still runs, while its streams are open. */
const STATE_POLL_MS = 250;
/** A timer this late is the machine's fault, never the rep's (spec/03, Budgets). */
const LATE_MS = 1000;
/** How long the engine may need to learn that a container's main process has ended. */
const SETTLE_MS = 500;
const COUNTERS_GONE_MS = 5000;
/** Exit code of a process killed with SIGKILL: what the end of the main process does to every other. */
const KILLED = 137;
const NEVER = new Promise<void>(() => {});

/** When to ask the engine: seldom while the streams are open; at once, then ever less often, after. */
class StatePolls {
  #delayMs = STATE_POLL_MS;
  #dueMs = STATE_POLL_MS;

  streamsEnded(): void {
    this.#delayMs = 1;
    this.#dueMs = 0;
  }

  asked(nowMs: number): void {
    this.#delayMs = Math.min(this.#delayMs * 2, STATE_POLL_MS);
    this.#dueMs = nowMs + this.#delayMs;
  }

  waitMs(nowMs: number): number {
    return Math.max(this.#dueMs - nowMs, 0);
  }
}

/** A container whose use is charged to the rep, and what it may use. */
export interface Charged {
  sandbox: Sandbox;
  limits: TrialTask['limits'];
}

/** Of several containers, what they used together; the sum of their peaks is no less than their common one. */
function together(readings: readonly CgroupReading[]): CgroupReading {
  const sum = (of: (reading: CgroupReading) => number) => readings.reduce((so, one) => so + of(one), 0);
  return {
    cpuUsec: sum(({ cpuUsec }) => cpuUsec),
    memoryPeakBytes: sum(({ memoryPeakBytes }) => memoryPeakBytes),
    oomKills: sum(({ oomKills }) => oomKills),
    throttledMs: sum(({ throttledMs }) => throttledMs),
  };
}

/** Watches one agent's exec against its budgets, from the engine's and the kernel's words alone. */
export class Watch {
  readonly #context: TrialContext;
  readonly #charged: readonly Charged[];
  readonly #budgets: Pick<TrialTask['limits'], 'cpu_budget_ms' | 'wall_budget_ms'>;
  readonly #startMs: number;
  readonly #baseline: CgroupReading;
  readonly #disks: readonly DiskWatch[];
  #latest: CgroupReading;
  #wallMs = 0;

  /** The baseline is read here: make one right before the exec's start. The budgets are of all together. */
  constructor(
    context: TrialContext,
    charged: readonly Charged[],
    budgets: Pick<TrialTask['limits'], 'cpu_budget_ms' | 'wall_budget_ms'>,
  ) {
    this.#context = context;
    this.#charged = charged;
    this.#budgets = budgets;
    this.#disks = charged.map(
      ({ sandbox, limits }) => new DiskWatch(context, sandbox.containerId, limits.storage_bytes),
    );
    this.#baseline = together(charged.map(({ sandbox }) => sandbox.cgroup.read()));
    this.#latest = this.#baseline;
    this.#startMs = context.clock.monotonicMs();
  }

  /**
   * Until the agent has ended by itself, is over a budget, or its container has left Running.
   * @throws cgroup_unreadable, timer_late (the machine's fault), engine_* from asking the engine.
   */
  async untilEnd(execId: string, streams: Promise<void>): Promise<Observation> {
    const polls = new StatePolls();
    let wake = streams.then(() => {
      polls.streamsEnded();
      wake = NEVER;
    });
    for (;;) {
      this.#context.signal.throwIfAborted();
      if (!this.#read()) return this.#withoutCounters();
      const over = this.#over();
      if (over) return this.#observation(over, null, 1, false);
      if (this.#disks.some((disk) => disk.isOver())) return this.#observation('disk_limit', null, 1, false);
      if (polls.waitMs(this.#wallMs) === 0) {
        for (const disk of this.#disks) disk.look();
        const exec = await this.#context.engine.execState(execId);
        if (!exec.running && exec.exitCode !== null) {
          // The final reading: a rep that ends by itself is judged by it too, and a second over is over.
          if (!this.#read()) return this.#withoutCounters();
          const ended = exec.exitCode === KILLED ? await this.#leftRunning(SETTLE_MS) : null;
          if (ended) return this.#observation('container_ended', null, exec.pid, ended.oomKilled);
          return this.#observation('agent_ended', exec.exitCode, exec.pid, false);
        }
        polls.asked(this.#wallMs);
      }
      await this.#sleep(Math.min(this.#untilReading(), polls.waitMs(this.#wallMs)), wake);
    }
  }

  /** The last reading, relative to the baseline. */
  reading(): Reading {
    return {
      wallMs: Math.ceil(this.#wallMs),
      cpuMs: Math.ceil(this.#cpuMs()),
      memoryPeakBytes: this.#latest.memoryPeakBytes,
      oomKills: this.#latest.oomKills - this.#baseline.oomKills,
      throttledMs: Math.round(this.#latest.throttledMs - this.#baseline.throttledMs),
    };
  }

  /** Reads the counters; false when the container is no longer there to be read. */
  #read(): boolean {
    this.#wallMs = this.#context.clock.monotonicMs() - this.#startMs;
    try {
      this.#latest = together(this.#charged.map(({ sandbox }) => sandbox.cgroup.read()));
      return true;
    } catch {
      return false;
    }
  }

  #cpuMs(): number {
    return (this.#latest.cpuUsec - this.#baseline.cpuUsec) / 1000;
  }

  #over(): EndCause | null {
    if (this.#cpuMs() >= this.#budgets.cpu_budget_ms) return 'cpu_budget';
    return this.#wallMs >= this.#budgets.wall_budget_ms ? 'wall_backstop' : null;
  }

  #untilReading(): number {
    const nanoCpus = this.#charged.reduce((sum, { limits }) => sum + limits.nano_cpus, 0);
    const cpuLeftMs = (this.#budgets.cpu_budget_ms - this.#cpuMs()) / (nanoCpus / 1e9);
    const cpuPollMs = Math.min(Math.max(cpuLeftMs, MIN_POLL_MS), MAX_POLL_MS);
    return Math.max(Math.min(cpuPollMs, this.#budgets.wall_budget_ms - this.#wallMs), 0);
  }

  #observation(
    cause: EndCause,
    exitCode: number | null,
    pid: number,
    containerOomKilled: boolean,
  ): Observation {
    return { cause, exitCode, pid, containerOomKilled, ...this.reading() };
  }

  /** Counters are gone: a container was ended from inside, or the engine wrongly says it runs. */
  async #withoutCounters(): Promise<Observation> {
    const ended = await this.#leftRunning(COUNTERS_GONE_MS);
    if (ended) return this.#observation('container_ended', null, 1, ended.oomKilled);
    const names = this.#charged.map(({ sandbox }) => sandbox.containerId).join(', ');
    throw new EvaluatorError(
      'cgroup_unreadable',
      `container ${names}: running, but its counters cannot be read`,
    );
  }

  /** The state of the first container that has left Running, or null when all still run after `withinMs`. */
  async #leftRunning(withinMs: number): Promise<ContainerState | null> {
    const { clock, engine } = this.#context;
    const untilMs = clock.monotonicMs() + withinMs;
    for (;;) {
      for (const { sandbox } of this.#charged) {
        const state = await engine.inspect(sandbox.containerId);
        if (!state.running) return state;
      }
      if (clock.monotonicMs() >= untilMs) return null;
      await clock.sleep(MIN_POLL_MS * 5);
    }
  }

  async #sleep(ms: number, wake: Promise<void>): Promise<void> {
    const before = this.#context.clock.monotonicMs();
    await Promise.race([this.#context.clock.sleep(ms), wake]);
    const lateMs = this.#context.clock.monotonicMs() - before - ms;
    if (lateMs > LATE_MS) {
      throw new EvaluatorError(
        'timer_late',
        `a timer of ${Math.round(ms)} ms fired ${Math.round(lateMs)} ms late`,
      );
    }
  }
}
