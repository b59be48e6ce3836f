import type { Allowlist, AllowlistEntry, KeyProvider, Measurement } from '../guest/wire/measurement.ts';

/** In place of what nobody has seen; never a value that anything could equal. */
export const UNKNOWN = 'UNKNOWN';
type OrUnknown<T> = { [K in keyof T]: T[K] | typeof UNKNOWN };

/** What can be compared with an allowlist. */
export interface Observed {
  measurement: OrUnknown<Measurement>;
  key_provider: OrUnknown<KeyProvider>;
}

/** An allowlist entry as far as it is known. */
export type DraftEntry = Observed & OrUnknown<Omit<AllowlistEntry, 'measurement' | 'key_provider'>>;

export type Verdict = 'IN-LIST' | 'NOT-IN-LIST' | 'UNKNOWN';

function compared({ measurement, key_provider }: Observed): [name: string, value: string][] {
  return [
    ...Object.entries(measurement),
    ...Object.entries(key_provider).map(([name, value]): [string, string] => [`key_provider.${name}`, value]),
  ];
}

/** The names of the fields that are UNKNOWN, as paths. */
export function unknownFields(entry: DraftEntry): string[] {
  const { vm_shape, os_version, image_ref, git_revision } = entry;
  return [...compared(entry), ...Object.entries({ vm_shape, os_version, image_ref, git_revision })]
    .filter(([, value]) => value === UNKNOWN)
    .map(([name]) => name);
}

/** True of an entry with nothing UNKNOWN. */
export function isComplete(entry: DraftEntry): entry is AllowlistEntry {
  return unknownFields(entry).length === 0;
}

/** The fields in which `observed` contradicts one entry; an UNKNOWN contradicts nothing. */
function contradictions(observed: Observed, entry: AllowlistEntry): string[] {
  const listed = new Map(compared(entry));
  return compared(observed)
    .filter(([name, value]) => value !== UNKNOWN && value !== listed.get(name))
    .map(([name]) => name);
}

/**
 * Whether the list has what was observed: every field of measurement and key provider, exactly (spec/06).
 * UNKNOWN when an entry fits as far as anything is known. `differs`: of the nearest entry.
 */
export function judge(
  observed: Observed,
  allowlist: Allowlist,
): { verdict: Verdict; differs: readonly string[] } {
  const byEntry = allowlist.entries.map((entry) => contradictions(observed, entry));
  const [differs = []] = byEntry.toSorted((one, other) => one.length - other.length);
  if (differs.length > 0) return { verdict: 'NOT-IN-LIST', differs };
  const isKnown = compared(observed).every(([, value]) => value !== UNKNOWN);
  return { verdict: isKnown ? 'IN-LIST' : 'UNKNOWN', differs };
}
