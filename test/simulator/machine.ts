import { type Fault, parseFault } from '../../simulator/faults.ts';
import { createPlatform, type Platform, type PlatformOptions } from '../../simulator/platform.ts';

/** 15 January 2026, noon UTC. */
export const NOW_MS = Date.UTC(2026, 0, 15, 12);
export const NOW_SECONDS = NOW_MS / 1000;

export const APP_COMPOSE = Buffer.from('{"name":"desk","runner":"docker-compose"}');

/** Faults written as the command line has them. */
export function faultList(...texts: string[]): Fault[] {
  return texts.map(parseFault);
}

/** A platform of a fixed seed at NOW_MS. */
export function machine(options: Partial<PlatformOptions> = {}): Promise<Platform> {
  return createPlatform({
    seed: Buffer.alloc(32, 7),
    appCompose: APP_COMPOSE,
    nowMs: NOW_MS,
    faults: [],
    ...options,
  });
}
