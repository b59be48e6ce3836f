import { EvaluatorError } from '../errors.ts';
import type { TrackRules } from '../wire/mechanism.ts';

/** How a track's reps are valued: one kind for each folder of guest/tracks. */
export type TrackKind = 'behavioural' | 'repositories' | 'terminal-bench';

const KINDS: Readonly<Record<string, TrackKind>> = {
  skills: 'behavioural',
  mcp_servers: 'behavioural',
  packages: 'behavioural',
  repositories: 'repositories',
  'terminal-bench': 'terminal-bench',
};

/** The metric that a mechanism must name for a track of each kind (spec/02). */
export const METRIC_OF_KIND = {
  behavioural: 'clamped_mcc',
  repositories: 'f2',
  'terminal-bench': 'pass_rate',
} as const satisfies Record<TrackKind, TrackRules['metric']>;

/** The kind of a track. @throws track_unknown: refused, never defaulted. */
export function trackKind(track: string): TrackKind {
  const kind = Object.hasOwn(KINDS, track) ? KINDS[track] : undefined;
  if (kind === undefined) {
    throw new EvaluatorError('track_unknown', `track "${track}": known are ${Object.keys(KINDS).join(', ')}`);
  }
  return kind;
}
