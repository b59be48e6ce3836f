import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical, encodeCanonical } from '../wire/canonical.ts';
import { digest } from '../wire/digest.ts';
import { verifierModeSchema } from '../wire/plan.ts';
import { id, imageRef, parseSchema, positiveInt, sha256, taskId } from '../wire/scalars.ts';
import { imageSourceSchema } from '../wire/score-record.ts';
import { artifactPathsProblem } from './artifact-paths.ts';
import { MAX_SEALED_BYTES } from './seal.ts';

const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

/** What a task's image was built on: one that a registry answered for, or a stand-in made by `evaluator base`. */
const imageBaseSchema = z.enum(['registry', 'stand-in']);
export type ImageBase = z.infer<typeof imageBaseSchema>;

const evidenceSchema = z.strictObject({
  kind: z.enum(['ctrf', 'none']),
  passed: positiveInt.nullable(),
});

const manifestTaskSchema = z.strictObject({
  task_id: taskId,
  /** The published digest of the package; of a sealed task it covers the salt too, or it would confirm guesses. */
  source_digest: sha256,
  task_digest: sha256,
  public_digest: sha256,
  /** Files in the task's folder: the public ones, and tests/ until sealed. */
  file_count: positiveInt,
  image: imageRef,
  image_source: imageSourceSchema,
  base: imageBaseSchema,
  track: id,
  verifier: verifierModeSchema,
  /** What verifier mode `artifact` carries over; none for another mode. */
  artifact_paths: z.array(z.string()).max(64),
  evidence: evidenceSchema,
  /** null: tests/ lies in plain beside the public files. */
  sealed: z.strictObject({ sha256, size: positiveInt.max(MAX_SEALED_BYTES) }).nullable(),
});
export type ManifestTask = z.infer<typeof manifestTaskSchema>;

const manifestSchema = z.strictObject({
  schema_version: z.literal(1),
  /** 32 bytes, hex; null until sealed. */
  cache_id: sha256.nullable(),
  /** SHA-256 of toolchain.tar. */
  toolchain_digest: sha256.nullable(),
  tasks: z.array(manifestTaskSchema).min(1).max(1024),
});
export type Manifest = z.infer<typeof manifestSchema>;

function inconsistency(manifest: Manifest): string | null {
  const ids = manifest.tasks.map((task) => task.task_id);
  if (ids.some((name, i) => i > 0 && name <= (ids[i - 1] ?? '')))
    return 'tasks: must be strictly ascending by task_id';
  if (new Set(ids.map((name) => name.toLowerCase())).size !== ids.length)
    return 'tasks: two names that differ in case only';
  for (const { task_id: name, verifier, artifact_paths: paths } of manifest.tasks) {
    if ((verifier === 'artifact') !== paths.length > 0)
      return `${name}: artifact_paths belong to verifier artifact, and only to it`;
    const problem = artifactPathsProblem(paths);
    if (problem !== null) return `${name}: artifact_paths: ${problem}`;
  }
  const sealed = manifest.tasks.filter((task) => task.sealed !== null).length;
  if (sealed !== 0 && sealed !== ids.length) return 'tasks: all are sealed or none is';
  if ((sealed !== 0) !== (manifest.cache_id !== null))
    return 'cache_id: belongs to a sealed cache, and only to one';
  return null;
}

/**
 * Reads manifest.json: canonical bytes, closed schema, and the rules between its fields.
 * @throws json_*, schema_invalid.
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  const manifest = parseSchema(manifestSchema, decodeCanonical(bytes, MAX_MANIFEST_BYTES), 'manifest.json');
  const problem = inconsistency(manifest);
  if (problem !== null) throw new EvaluatorError('schema_invalid', `manifest.json: ${problem}`);
  return manifest;
}

/** The bytes of manifest.json, checked by the same rules that read it. */
export function encodeManifest(manifest: Manifest): Buffer {
  const bytes = encodeCanonical(manifest);
  parseManifest(bytes);
  return bytes;
}

/** `cache_digest`: the digest of the manifest, which pins every file of the cache. */
export function cacheDigest(manifest: Manifest): string {
  return digest(manifest);
}
