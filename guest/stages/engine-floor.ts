import type { EngineInfo } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import type { Mechanism } from '../wire/mechanism.ts';

function numbers(version: string): number[] {
  return (version.match(/^\d+(\.\d+)*/)?.[0] ?? '0').split('.').map(Number);
}

/** Whether a version (25.0.3, 1.1.12+ds1) is at or above a floor, compared number by number. */
export function isAtLeast(version: string, floor: string): boolean {
  const [have, want] = [numbers(version), numbers(floor)];
  for (let i = 0; i < want.length; i++) {
    const difference = (have[i] ?? 0) - (want[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/**
 * A ranked run needs an engine and a runc that answer the mechanism's CVEs; a local one only an API that
 * has what we call.
 * @throws engine_below_floor.
 */
export function verifyEngineFloor(
  info: EngineInfo,
  floors: Mechanism['floors'],
  run: 'ranked' | 'local',
): void {
  const below = (what: string, have: string, want: string) =>
    new EvaluatorError(
      'engine_below_floor',
      `engine: ${what} ${have} is below the floor ${want} of the mechanism; upgrade it`,
    );
  if (!isAtLeast(info.apiVersion, floors.local_api)) throw below('API', info.apiVersion, floors.local_api);
  if (run === 'local') return;
  if (!isAtLeast(info.version, floors.engine.version))
    throw below('version', info.version, floors.engine.version);
  if (!isAtLeast(info.runcVersion, floors.runc.version))
    throw below('runc', info.runcVersion, floors.runc.version);
}
