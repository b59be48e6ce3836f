import { type TrackKind, trackKind } from '../consensus/track-kind.ts';
import { runTask as behavioural } from '../tracks/behavioural/run-task.ts';
import { runTask as repositories } from '../tracks/repositories/run-task.ts';
import { runTask as terminalBench } from '../tracks/terminal-bench/run-task.ts';
import type { RunTask } from '../tracks/track.ts';

const RUN_TASK: Readonly<Record<TrackKind, RunTask>> = {
  behavioural,
  repositories,
  'terminal-bench': terminalBench,
};

/** How a task of this track is run. @throws track_unknown. */
export function runTaskOf(track: string): RunTask {
  return RUN_TASK[trackKind(track)];
}
