import { z } from 'zod';
import { plainHttpsUrl } from './inference.ts';
import { pem, positiveInt } from './scalars.ts';

/** The most that an agent's dependencies may be unpacked, whatever a mechanism says. */
const MAX_DEPENDENCY_BYTES = 200_000_000;

/** A project's name as the index knows it: lower case, one `-` for every run of `-`, `_` and `.`. */
const projectName = z
  .string()
  .max(128)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a normalised project name');

/** A version, as a pin names it. */
export const PACKAGE_VERSION = /^[0-9](?:[0-9A-Za-z.!+_-]{0,62}[0-9A-Za-z])?$/;

/** Where agents' wheels come from, and which may be had (docs/agents.md, Dependencies). */
export const packageIndexSchema = z.strictObject({
  /** The root of a simple API with JSON pages. */
  index: plainHttpsUrl,
  /** The only issuer that is believed there; null: the public ones. */
  ca_pem: pem.nullable(),
  names: z.array(projectName).max(8192),
  /** Of all wheels of an agent together, unpacked. */
  max_bytes: positiveInt.max(MAX_DEPENDENCY_BYTES),
});
export type PackageIndex = z.infer<typeof packageIndexSchema>;
