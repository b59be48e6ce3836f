/** How often what waited too long is closed, and what could not be judged is tried again. */
const UPKEEP_EVERY_MS = 30_000;

/**
 * Does `upkeep` regularly. One that fails is told of and tried again: a database that is locked, or a disk that
 * is full, must not end a challenge that guests are waiting for.
 * @returns ends it.
 */
export function startUpkeep(
  upkeep: () => void,
  log: (event: { event: string; detail: string }) => void,
): () => void {
  const timer = setInterval(() => {
    try {
      upkeep();
    } catch (error) {
      log({ event: 'upkeep_failed', detail: error instanceof Error ? error.message : 'unknown' });
    }
  }, UPKEEP_EVERY_MS);
  return () => clearInterval(timer);
}
