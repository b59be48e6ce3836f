import { composeHash } from '../../compose/app-compose.ts';
import {
  knownPlatform,
  knownRegisters,
  VM_SHAPES,
  verifyOsVersion,
} from '../../compose/known-measurements.ts';
import { type Composed, renderComposed } from '../../compose/parse.ts';
import { type DraftEntry, type Observed, UNKNOWN } from '../../compose/verdict.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { osImageHash } from '../../guest/wire/measurement.ts';

/** What an operator says of a deployment; null is not said. */
export interface Described {
  osVersion: string | null;
  /** A name of `VM_SHAPES`. */
  shape: string | null;
  imageRef: string | null;
  gitRevision: string | null;
}

/** @throws usage. */
function vmShape(shape: string): DraftEntry['vm_shape'] {
  const found = Object.hasOwn(VM_SHAPES, shape) ? VM_SHAPES[shape] : undefined;
  if (found) return found;
  throw new EvaluatorError(
    'usage',
    `--shape ${JSON.stringify(shape)}: known are ${Object.keys(VM_SHAPES).join(', ')}`,
  );
}

function draft(observed: Observed, described: Described): DraftEntry {
  const { osVersion, shape, imageRef, gitRevision } = described;
  if (osVersion !== null) verifyOsVersion(osVersion);
  const { measurement, key_provider } = observed;
  return {
    measurement,
    key_provider,
    vm_shape: shape === null ? UNKNOWN : vmShape(shape),
    os_version: osVersion ?? UNKNOWN,
    image_ref: imageRef ?? UNKNOWN,
    git_revision: gitRevision ?? UNKNOWN,
  };
}

/**
 * The entry of a deployment that is yet to be made: the compose hash is computed, the registers are those of
 * the published table, the rest is what was said.
 * @throws usage, os_not_allowed, schema_invalid, env_name_refused.
 */
export function entryOfCompose(composed: Composed, described: Described): DraftEntry {
  const { osVersion, shape } = described;
  const known = osVersion === null || shape === null ? null : knownRegisters(osVersion, shape);
  const compose_hash = composeHash(renderComposed(composed));
  const measurement = known
    ? {
        mrtd: known.mrtd,
        rtmr0: known.rtmr0,
        rtmr1: known.rtmr1,
        rtmr2: known.rtmr2,
        compose_hash,
        os_image_hash: osImageHash(known),
      }
    : {
        mrtd: UNKNOWN,
        rtmr0: UNKNOWN,
        rtmr1: UNKNOWN,
        rtmr2: UNKNOWN,
        compose_hash,
        os_image_hash: UNKNOWN,
      };
  const id = composed.keyProviderId ?? UNKNOWN;
  // app-compose names a KMS by its id alone; its name in the log is always this one.
  const key_provider = { name: id === UNKNOWN ? UNKNOWN : 'phala', id };
  return draft({ measurement, key_provider }, { ...described, imageRef: composed.imageRef });
}

/**
 * The entry of a captured attestation; OS and shape from the table where its registers are known there.
 * @throws usage, os_not_allowed.
 */
export function entryOfCapture(observed: Observed, described: Described): DraftEntry {
  const known = knownPlatform(observed.measurement);
  return draft(observed, {
    ...described,
    osVersion: described.osVersion ?? known?.os_version ?? null,
    shape: described.shape ?? known?.shape ?? null,
  });
}
