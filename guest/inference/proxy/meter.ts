import { Refusal } from './refusal.ts';
import type { Usage } from './reply.ts';

/** The most that one rep may use (mechanism, inference.caps). */
export interface Caps {
  requests: number;
  sent_bytes: number;
  received_bytes: number;
  /** Prompts and replies together. */
  tokens: number;
}

/** What one rep has used. */
export interface Counts {
  /** Sent to the model's endpoint. */
  requests: number;
  /** Answered by the proxy itself. */
  refused: number;
  /** Bodies sent to, and received from, the endpoint. */
  sent_bytes: number;
  received_bytes: number;
  prompt_tokens: number;
  completion_tokens: number;
}

/** What is taken from one agent at once: bounds memory, and by how much a cap can be overrun. */
const AT_ONCE = 4;

/** Counts what a rep uses, and says when it has had enough. */
export class Meter {
  readonly #caps: Caps;
  readonly #onChange: (counts: Counts) => void;
  readonly #counts: Counts = {
    requests: 0,
    refused: 0,
    sent_bytes: 0,
    received_bytes: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
  };
  #atOnce = 0;

  /** @param onChange told of the counts after each change, before what is counted happens. */
  constructor(caps: Caps, onChange: (counts: Counts) => void) {
    this.#caps = caps;
    this.#onChange = onChange;
  }

  get counts(): Counts {
    return { ...this.#counts };
  }

  #add(more: Partial<Counts>): void {
    for (const [key, value] of Object.entries(more)) this.#counts[key as keyof Counts] += value;
    this.#onChange(this.counts);
  }

  /** A place among those that are served at once, until it is released. @throws Refusal: busy. */
  enter(): () => void {
    if (this.#atOnce >= AT_ONCE) throw new Refusal('busy', `at most ${AT_ONCE} requests are taken at once`);
    this.#atOnce++;
    return () => {
      this.#atOnce--;
    };
  }

  /** Counts a request right before it is sent. @returns its number, from 1. @throws Refusal: cap_exhausted. */
  send(bytes: number): number {
    const { requests, sent_bytes, received_bytes, prompt_tokens, completion_tokens } = this.#counts;
    const reached: readonly (readonly [string, boolean])[] = [
      ['requests', requests >= this.#caps.requests],
      ['sent_bytes', sent_bytes + bytes > this.#caps.sent_bytes],
      ['received_bytes', received_bytes >= this.#caps.received_bytes],
      ['tokens', prompt_tokens + completion_tokens >= this.#caps.tokens],
    ];
    const over = reached.find(([, isOver]) => isOver);
    if (over) throw new Refusal('cap_exhausted', `this repetition has used up its ${over[0]}`);
    this.#add({ requests: 1, sent_bytes: bytes });
    return this.#counts.requests;
  }

  received(bytes: number): void {
    this.#add({ received_bytes: bytes });
  }

  used(usage: Usage): void {
    this.#add(usage);
  }

  refused(): void {
    this.#add({ refused: 1 });
  }
}
