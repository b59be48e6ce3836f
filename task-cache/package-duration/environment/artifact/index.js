/** Milliseconds as `1h 2m 3s`; parts that are 0 are left out. */
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  return parts.filter(([n]) => n > 0).map(([n, unit]) => `${n}${unit}`).join(' ') || '0s';
}
