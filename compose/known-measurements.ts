import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { EvaluatorError } from '../guest/errors.ts';
import type { VmShape } from '../guest/wire/measurement.ts';
import { id, parseSchema, register } from '../guest/wire/scalars.ts';

/** The shapes on offer, by name. RTMR0 differs with each (spec/06). */
export const VM_SHAPES: Readonly<Record<string, VmShape>> = {
  'tdx.small': { vcpu: 1, memory_mb: 2048 },
  'tdx.medium': { vcpu: 2, memory_mb: 4096 },
  'tdx.large': { vcpu: 4, memory_mb: 8192 },
  'tdx.xlarge': { vcpu: 8, memory_mb: 16_384 },
};

const knownSchema = z.strictObject({
  os_version: id,
  shape: z.enum(Object.keys(VM_SHAPES)),
  mrtd: register,
  rtmr0: register,
  rtmr1: register,
  rtmr2: register,
});

/** Registers that a genuine quote of this OS version on this shape had. */
export type KnownRegisters = z.infer<typeof knownSchema>;

export const KNOWN_MEASUREMENTS: readonly KnownRegisters[] = parseSchema(
  z.array(knownSchema),
  JSON.parse(readFileSync(new URL('known-measurements.json', import.meta.url), 'utf8')),
  'known measurements',
);

/** Null when no quote of that pair was seen: nothing is derived from another shape's. */
export function knownRegisters(osVersion: string, shape: string): KnownRegisters | null {
  return KNOWN_MEASUREMENTS.find((row) => row.os_version === osVersion && row.shape === shape) ?? null;
}

/** The OS and shape whose registers these are; null when the table does not say. */
export function knownPlatform(registers: {
  mrtd: string;
  rtmr0: string;
  rtmr1: string;
  rtmr2: string;
}): KnownRegisters | null {
  const fields = ['mrtd', 'rtmr0', 'rtmr1', 'rtmr2'] as const;
  return KNOWN_MEASUREMENTS.find((row) => fields.every((field) => row[field] === registers[field])) ?? null;
}

/** The first dstack that runs the init script (spec/06). */
const FIRST = [0, 5, 5] as const;

/**
 * An OS image that may be allowlisted: a release, `dstack-X.Y.Z`, not older than 0.5.5.
 * @throws os_not_allowed.
 */
export function verifyOsVersion(osVersion: string): void {
  const parts = /^dstack-(?:nvidia-)?(\d{1,4})\.(\d{1,4})\.(\d{1,4})$/.exec(osVersion)?.slice(1).map(Number);
  const refuse = (problem: string) =>
    new EvaluatorError('os_not_allowed', `OS ${JSON.stringify(osVersion.slice(0, 128))}: ${problem}`);
  if (/dev/i.test(osVersion)) throw refuse('a development image lets its owner in');
  if (!parts) throw refuse('not of the form dstack-X.Y.Z');
  const differing = FIRST.findIndex((part, index) => part !== parts[index]);
  if (differing >= 0 && Number(parts[differing]) < Number(FIRST[differing])) {
    throw refuse('older than dstack 0.5.5, which is the first to run an init script');
  }
}
