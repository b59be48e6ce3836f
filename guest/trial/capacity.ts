/** What a rep needs of the VM while it runs. */
export interface Need {
  cpus: number;
  memoryBytes: number;
  diskBytes: number;
  slots: number;
}

export type Release = () => void;

interface Waiter {
  need: Need;
  order: number;
  grant: (release: Release) => void;
}

const KEYS = ['cpus', 'memoryBytes', 'diskBytes', 'slots'] as const;

/**
 * Packs needs into what the VM has. Waiters are looked at in order, and whichever fits starts, so that one
 * 4-CPU task does not make every other wait (spec/03, Scheduling). Needs are granted whole, never in part.
 */
export class Capacity {
  readonly #free: Need;
  readonly #total: Need;
  readonly #waiting: Waiter[] = [];

  constructor(total: Need) {
    this.#total = { ...total };
    this.#free = { ...total };
  }

  /** The first key of which the need is more than the whole, or null when it fits an idle VM. */
  neverFits(need: Need): keyof Need | null {
    return KEYS.find((key) => need[key] > this.#total[key]) ?? null;
  }

  /** Resolves when `need` is reserved; lower `order` is looked at first. The release may be called once or more. */
  acquire(need: Need, order: number): Promise<Release> {
    return new Promise((grant) => {
      const at = this.#waiting.findIndex((waiter) => waiter.order > order);
      this.#waiting.splice(at === -1 ? this.#waiting.length : at, 0, { need, order, grant });
      this.#startWhatFits();
    });
  }

  #startWhatFits(): void {
    for (let i = 0; i < this.#waiting.length; ) {
      const waiter = this.#waiting[i];
      if (!waiter || KEYS.some((key) => waiter.need[key] > this.#free[key])) {
        i++;
        continue;
      }
      this.#waiting.splice(i, 1);
      for (const key of KEYS) this.#free[key] -= waiter.need[key];
      waiter.grant(this.#releaseOnce(waiter.need));
    }
  }

  #releaseOnce(need: Need): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      for (const key of KEYS) this.#free[key] += need[key];
      this.#startWhatFits();
    };
  }
}
