export interface SerialQueue {
  /** Adds a name, unless it waits already; does not wait. */
  enqueue(name: string): void;
  /** Resolves when the queue is empty. */
  idle(): Promise<void>;
}

/**
 * Works on one name after the other: a quote takes a few milliseconds of a whole core.
 * @param work must not reject.
 */
export function createSerialQueue(work: (name: string) => Promise<void>): SerialQueue {
  let tail: Promise<void> = Promise.resolve();
  const queued = new Set<string>();
  return {
    enqueue: (name) => {
      if (queued.has(name)) return;
      queued.add(name);
      tail = tail.then(() => {
        queued.delete(name);
        return work(name);
      });
    },
    idle: async () => {
      for (let seen: Promise<void> | undefined; seen !== tail; ) {
        seen = tail;
        await seen;
      }
    },
  };
}
