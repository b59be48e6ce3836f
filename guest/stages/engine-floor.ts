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
 * The engine and its runc are at or above the mechanism's floors, which answer known CVEs.
 * @throws engine_below_floor.
 */
export function verifyEngineFloor(info: EngineInfo, floors: Mechanism['floors']): void {
  const versions = [
    ['API', info.apiVersion, floors.api],
    ['version', info.version, floors.engine.version],
    ['runc', info.runcVersion, floors.runc.version],
  ] as const;
  const below = versions.find(([, have, floor]) => !isAtLeast(have, floor));
  if (below === undefined) return;
  const [what, have, floor] = below;
  throw new EvaluatorError(
    'engine_below_floor',
    `engine: ${what} ${have} is below the floor ${floor} of the mechanism; upgrade it`,
  );
}
