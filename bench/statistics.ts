/** The value below which a share of the samples lies (nearest rank). */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? Number.NaN;
}

/** `p50 / p95 / max` of samples in ms. */
export function spread(samples: readonly number[]): string {
  return [0.5, 0.95, 1].map((share) => Math.round(percentile(samples, share))).join(' / ');
}
