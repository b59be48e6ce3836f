/** What a rep needs of the VM while it runs. */
export interface Need {
  cpus: number;
  memoryBytes: number;
  diskBytes: number;
  slots: number;
}

/** What is asked for. */
export interface Wanted extends Need {
  /** Reserved as well, as far as the whole VM has so many: what fills it runs alone in any case. */
  sparableCpus?: number;
}

export type Release = () => void;

interface Waiter {
  need: Need;
  order: number;
  grant: (release: Release) => void;
}

const KEYS = ['cpus', 'memoryBytes', 'diskBytes', 'slots'] as const;
const MIB = 1024 * 1024;

/** A need that is more than the whole, in words: what is wanted, and what there is. */
function lackOf(key: keyof Need, wanted: number, whole: number): string {
  const mib = (bytes: number) => Math.max(0, Math.floor(bytes / MIB));
  switch (key) {
    case 'cpus':
      return `${wanted} CPUs, and this machine has ${whole}`;
    case 'memoryBytes':
      return `${mib(wanted)} MiB of memory, and this machine has ${mib(whole)} MiB beside its reserve`;
    case 'diskBytes':
      return `${mib(wanted)} MiB of disk, and this machine has ${mib(whole)} MiB free beside its reserve`;
    case 'slots':
      return `${wanted} places, and there are ${whole}`;
  }
}

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

  /** The first of what is needed that is more than the whole, and by how much, in words; null when it fits an idle VM. */
  neverFits(need: Need): string | null {
    const key = KEYS.find((one) => need[one] > this.#total[one]);
    return key === undefined ? null : lackOf(key, need[key], this.#total[key]);
  }

  /** Resolves when what is asked for is reserved; lower `order` is looked at first. The release may be called once or more. */
  acquire(asked: Wanted, order: number): Promise<Release> {
    const spare = Math.max(0, Math.min(asked.sparableCpus ?? 0, this.#total.cpus - asked.cpus));
    const { memoryBytes, diskBytes, slots } = asked;
    const need: Need = { cpus: asked.cpus + spare, memoryBytes, diskBytes, slots };
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
