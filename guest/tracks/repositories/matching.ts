/**
 * The size of a maximum one-to-one matching between `left` and `right`, by augmenting paths. Greedy pairing
 * would lose matches: planted lines 18 and 25, reported 22 and 14 (spec/02).
 * @param fits must be a pure test; right indices that need not be looked at are not.
 */
export function maximumMatching(
  left: number,
  right: number,
  fits: (left: number, right: number) => boolean,
): number {
  const neighbours = Array.from({ length: left }, (_, l) => firstFitting(left, right, (r) => fits(l, r)));
  const partner = new Map<number, number>();
  const augment = (l: number, seen: Set<number>): boolean => {
    for (const r of neighbours[l] ?? []) {
      if (seen.has(r)) continue;
      seen.add(r);
      const other = partner.get(r);
      if (other === undefined || augment(other, seen)) {
        partner.set(r, l);
        return true;
      }
    }
    return false;
  };
  let size = 0;
  for (let l = 0; l < left; l++) if (augment(l, new Set())) size += 1;
  return size;
}

/** Of a left one's neighbours `limit` are enough: the other left ones take at most `limit` - 1 of them. */
function firstFitting(limit: number, right: number, fits: (right: number) => boolean): number[] {
  const found: number[] = [];
  for (let r = 0; r < right && found.length < limit; r++) if (fits(r)) found.push(r);
  return found;
}
