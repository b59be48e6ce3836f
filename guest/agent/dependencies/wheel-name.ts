import { normalizeName } from './requirements.ts';

/** What a wheel's file name says (PEP 427). */
export interface WheelName {
  /** Normalised. */
  project: string;
  version: string;
  pythons: readonly string[];
  abis: readonly string[];
  platforms: readonly string[];
}

/** Where wheels are to run: a CPython of this version on linux/x86_64, or any Python at all. */
export type WheelTarget = { python: 'any' } | { python: 'cpython'; minor: number; glibcMinor: number };

const WHEEL =
  /^([A-Za-z0-9._]+)-([A-Za-z0-9._!+]+)(?:-[0-9][A-Za-z0-9_.]*)?-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)\.whl$/;

/** Reads a wheel's file name; null for a file that is none. */
export function parseWheelName(filename: string): WheelName | null {
  const [, project, version, pythons, abis, platforms] = WHEEL.exec(filename) ?? [];
  if (!project || !version || !pythons || !abis || !platforms) return null;
  return {
    project: normalizeName(project),
    version,
    pythons: pythons.split('.'),
    abis: abis.split('.'),
    platforms: platforms.split('.'),
  };
}

/** glibc's minor version for the names from before PEP 600. */
const LEGACY_GLIBC: Readonly<Record<string, number>> = {
  manylinux1: 5,
  manylinux2010: 12,
  manylinux2014: 17,
};

function runsOn(platform: string, glibcMinor: number): boolean {
  const legacy = /^(manylinux(?:1|2010|2014))_x86_64$/.exec(platform)?.[1];
  const needs = legacy ? LEGACY_GLIBC[legacy] : Number(/^manylinux_2_(\d+)_x86_64$/.exec(platform)?.[1]);
  return needs !== undefined && needs <= glibcMinor;
}

/** Python 3 of a minor version that is not above ours. */
function isOurPython(tag: string, prefix: 'py' | 'cp', minor: number): boolean {
  if (tag === 'py3') return prefix === 'py';
  const named = new RegExp(`^${prefix}3(\\d{1,2})$`).exec(tag)?.[1];
  return named !== undefined && Number(named) <= minor;
}

/**
 * How well a wheel fits: the greater the better, null for not at all. Machine code for exactly this Python
 * comes before the stable ABI, that before pure Python.
 */
export function fitOf(wheel: WheelName, target: WheelTarget): number | null {
  const pure = wheel.abis.includes('none') && wheel.platforms.includes('any');
  if (target.python === 'any') return pure && wheel.pythons.includes('py3') ? 0 : null;
  const { minor, glibcMinor } = target;
  if (pure && wheel.pythons.some((tag) => isOurPython(tag, 'py', minor) || isOurPython(tag, 'cp', minor)))
    return 0;
  if (!wheel.platforms.some((platform) => runsOn(platform, glibcMinor))) return null;
  const own = `cp3${minor}`;
  if (wheel.pythons.includes(own) && wheel.abis.includes(own)) return 3;
  if (wheel.abis.includes('abi3') && wheel.pythons.some((tag) => isOurPython(tag, 'cp', minor))) return 2;
  if (
    wheel.abis.includes('none') &&
    wheel.pythons.some((tag) => tag === own || isOurPython(tag, 'py', minor))
  )
    return 1;
  return null;
}
