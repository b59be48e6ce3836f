import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { GrantFacts } from '../../challenge/ledger/grants.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { standingScore } from '../../challenge/ledger/standing.ts';
import { type GrantClaim, verifyGrant } from '../../challenge/verify/grant.ts';
import { platformOf } from '../../challenge/verify/ppid.ts';
import { parseEventLog, readRuntimeClaims } from '../../guest/attest/event-log.ts';
import { parseQuote } from '../../guest/attest/quote.ts';
import { isEvaluatorError } from '../../guest/errors.ts';
import { decodeF64be, encodeF64be } from '../../guest/wire/f64.ts';
import { MAX_GRANTS, sealedRun } from '../support/ledger.ts';
import { NOW_MS, testPlatform } from '../support/valid-result.ts';

/**
 * A miner chooses which runs to prepare, how many machines to boot on a plan, which of them say that they start,
 * which RESULT to deliver, and what to forge, knowing every score as soon as its agents have run. A machine is
 * the measured guest: it asks for keys, says that it starts, and has a score only after that was received.
 */
const TTL_MS = 100;
let quote: GrantClaim['quote'];
let claims: GrantClaim['claims'];
let facts: Omit<GrantFacts, 'grantId'>;
beforeAll(async () => {
  const machine = await testPlatform({ nowMs: NOW_MS });
  quote = parseQuote(machine.quote(Buffer.alloc(64), { version: 4 }));
  claims = readRuntimeClaims(parseEventLog(machine.eventLog));
  const { appId, instanceId } = claims;
  facts = { measurement: machine.measurement, appId, instanceId, platform: platformOf(quote) };
});

interface Machine {
  run: string;
  spki: string;
  grantId: string | null;
  score: number | null;
}

class World {
  readonly ledger = new SqliteLedger(':memory:');
  readonly runs: string[] = [];
  readonly machines: Machine[] = [];
  /** The score of the first agents that ran: what an honest miner would have got. */
  honest: number | null = null;
  #nowMs = 1;
  readonly #draws: Iterator<number>;

  constructor(draws: readonly number[]) {
    this.#draws = draws[Symbol.iterator]();
  }

  /** What the challenge refuses is no move at all. */
  #attempt(move: () => void): boolean {
    try {
      move();
      return true;
    } catch (error) {
      if (isEvaluatorError(error)) return false;
      throw error;
    }
  }

  prepare(): boolean {
    const id = `run-${this.runs.length}`;
    return this.#attempt(() => {
      this.ledger.prepare(sealedRun(id, { expiresAtMs: this.#nowMs + TTL_MS }), this.#nowMs);
      this.runs.push(id);
    });
  }

  boot(run: string): Machine | null {
    const spki = `machine ${this.machines.length}`;
    const machine: Machine = { run, spki, grantId: null, score: null };
    const booted = this.#attempt(() => {
      const asked = { nonce: `key nonce of ${run}`, spkiDigest: spki };
      const { attemptId } = this.ledger.beginAttempt(run, asked, MAX_GRANTS, this.#nowMs);
      const grantId = this.machines.length.toString(16).padStart(32, '0');
      this.ledger.grant(attemptId, { ...facts, grantId }, MAX_GRANTS, this.#nowMs);
      machine.grantId = grantId;
      this.machines.push(machine);
    });
    return booted ? machine : null;
  }

  /** Agents run only behind the receipt; then their score is known, and the miner can look at it. */
  start(machine: Machine): void {
    const { run, spki, grantId } = machine;
    if (machine.score !== null || grantId === null) return;
    this.#attempt(() => {
      this.ledger.start(run, grantId, spki, this.#nowMs);
      machine.score = this.#draws.next().value ?? 0;
      this.honest ??= machine.score;
    });
  }

  deliver(machine: Machine): void {
    const { run, grantId, score } = machine;
    if (score === null) return;
    this.#receive(run, `result of ${grantId}`, () => {
      const file = { grants: this.ledger.grants(run), started: this.ledger.started(run) };
      verifyGrant({ grantId, quote, claims }, file);
      this.ledger.accept(run, encodeF64be(score), this.#nowMs);
    });
  }

  /** Bytes that get a receipt and then do not verify. */
  forge(run: string): void {
    this.#receive(run, 'forged', () => this.ledger.reject(run, 'quote_signature_invalid', this.#nowMs));
  }

  #receive(run: string, bytes: string, judge: () => void): void {
    this.#attempt(() => {
      this.ledger.receive(run, Buffer.from(bytes), this.#nowMs);
      if (this.ledger.run(run)?.state !== 'received') return;
      if (!this.#attempt(judge)) this.ledger.reject(run, 'grant_superseded', this.#nowMs);
    });
  }

  wait(): void {
    this.#nowMs += TTL_MS;
    this.ledger.closeOverdue(this.#nowMs, TTL_MS);
  }

  /** The best score that any run of the agent counts with. */
  payoff(): number {
    this.wait();
    const scores = this.runs.map((run) => this.ledger.run(run)).map((run) => run && standingScore(run));
    return Math.max(0, ...scores.map((score) => (score ? decodeF64be(score) : 0)));
  }
}

const DRAWS = [0.25, 1, 0.5, 0.75, 1];
const first = (world: World): Machine => {
  world.prepare();
  const machine = world.boot('run-0');
  if (!machine) throw new Error('the first machine gets its keys');
  return machine;
};

const STRATEGIES: Record<string, (world: World) => void> = {
  honest: (world) => {
    const machine = first(world);
    world.start(machine);
    world.deliver(machine);
  },
  'drops a bad run and prepares again': (world) => {
    world.start(first(world));
    world.wait();
    for (let i = 1; i < 4 && world.prepare(); i++) {
      const machine = world.boot(`run-${i}`);
      if (!machine) return;
      world.start(machine);
      world.deliver(machine);
    }
  },
  'drops a bad run and boots again on the same plan': (world) => {
    world.start(first(world));
    const second = world.boot('run-0');
    if (!second) return;
    world.start(second);
    world.deliver(second);
  },
  'boots two machines on one plan and delivers the better': (world) => {
    const machines = [first(world), world.boot('run-0')].filter((machine) => machine !== null);
    for (const machine of machines) world.start(machine);
    const [best] = machines.toSorted((a, b) => (b.score ?? 0) - (a.score ?? 0));
    if (best) world.deliver(best);
  },
  'starts one machine, then gets keys for another and delivers that': (world) => {
    const machine = first(world);
    world.start(machine);
    const other = world.boot('run-0') ?? machine;
    world.start(other);
    world.deliver(other);
  },
  'prepares two plans at once and delivers the better': (world) => {
    const machine = first(world);
    world.prepare();
    const other = world.boot('run-1');
    for (const one of [machine, other]) if (one) world.start(one);
    if (other) world.deliver(other);
  },
  'has its own bad run rejected by a forgery and prepares again': (world) => {
    world.start(first(world));
    world.forge('run-0');
    world.prepare();
    const other = world.boot('run-1');
    if (!other) return;
    world.start(other);
    world.deliver(other);
  },
  'delivers, looks at the score and prepares again': (world) => {
    STRATEGIES.honest?.(world);
    world.prepare();
    const other = world.boot('run-1');
    if (!other) return;
    world.start(other);
    world.deliver(other);
  },
};

describe('a miner who', () => {
  it.each(Object.keys(STRATEGIES))('%s gets no more than the first agents that ran', (name) => {
    const world = new World(DRAWS);
    STRATEGIES[name]?.(world);
    expect(world.payoff()).toBeLessThanOrEqual(world.honest ?? 0);
    if (name === 'honest') expect(world.payoff()).toBe(DRAWS[0]);
  });
});

it('no sequence of moves pays more than honesty', () => {
  const move = fc.record({
    kind: fc.constantFrom('prepare', 'boot', 'start', 'start', 'deliver', 'forge', 'wait'),
    index: fc.nat(2),
  });
  fc.assert(
    fc.property(
      fc.array(move, { minLength: 20, maxLength: 40 }),
      fc.array(fc.integer({ min: 0, max: 8 }), { minLength: 10, maxLength: 10 }),
      (moves, eighths) => {
        const world = new World(eighths.map((n) => n / 8));
        world.prepare();
        for (const { kind, index } of moves) {
          const machine = world.machines[index];
          const run = world.runs[index];
          if (kind === 'prepare') world.prepare();
          if (kind === 'boot' && run) world.boot(run);
          if (kind === 'start' && machine) world.start(machine);
          if (kind === 'deliver' && machine) world.deliver(machine);
          if (kind === 'forge' && run) world.forge(run);
          if (kind === 'wait') world.wait();
        }
        expect(world.payoff()).toBeLessThanOrEqual(world.honest ?? 0);
        // Agents run once, whatever the miner does.
        expect(world.machines.filter(({ score }) => score !== null).length).toBeLessThanOrEqual(1);
        world.ledger.close();
      },
    ),
    { numRuns: 300 },
  );
});
