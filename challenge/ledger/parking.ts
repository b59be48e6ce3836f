/** How long a receipt waits for a verifier that can judge it, and how many may wait (spec/07). */
export const PARKED_FOR_MS = 24 * 3_600_000;
export const MAX_PARKED = 1000;
