import { z } from 'zod';
import { sha256Hex } from './digest.ts';
import { id, imageDigestRef, positiveInt, register, sha256 } from './scalars.ts';

/** The registers and hashes that say which image runs; part of the score preimage (spec/01). */
export const measurementSchema = z.strictObject({
  mrtd: register,
  rtmr0: register,
  rtmr1: register,
  rtmr2: register,
  compose_hash: sha256,
  os_image_hash: sha256,
});
export type Measurement = z.infer<typeof measurementSchema>;

/** Who provisioned the VM's keys: a host could run a KMS of its own, so the id is compared exactly. */
export const keyProviderSchema = z.strictObject({ name: id, id: z.string().regex(/^[\x21-\x7e]{1,1024}$/) });
export type KeyProvider = z.infer<typeof keyProviderSchema>;

export const vmShapeSchema = z.strictObject({ vcpu: positiveInt, memory_mb: positiveInt });
export type VmShape = z.infer<typeof vmShapeSchema>;

/**
 * One published measurement (spec/06). Compared: every field of `measurement` and `key_provider`.
 * Informative only, used by no check: vm_shape, os_version, image_ref, git_revision.
 */
export const allowlistEntrySchema = z.strictObject({
  measurement: measurementSchema,
  key_provider: keyProviderSchema,
  vm_shape: vmShapeSchema,
  os_version: id,
  image_ref: imageDigestRef,
  git_revision: id,
});
export type AllowlistEntry = z.infer<typeof allowlistEntrySchema>;

export const allowlistSchema = z.strictObject({
  schema_version: z.literal(1),
  entries: z.array(allowlistEntrySchema).min(1).max(1024),
});
export type Allowlist = z.infer<typeof allowlistSchema>;

/** os_image_hash by registers: sha256(MRTD ‖ RTMR1 ‖ RTMR2) over the raw 48-byte values (spec/01). */
export function osImageHash(registers: { mrtd: string; rtmr1: string; rtmr2: string }): string {
  return sha256Hex(Buffer.from(registers.mrtd + registers.rtmr1 + registers.rtmr2, 'hex'));
}
