import { z } from 'zod';
import { verifierModeSchema } from './plan.ts';
import { f64be, id, imageId, imageRef, int, positiveInt, sha256, taskId } from './scalars.ts';

/** Why a rep failed (spec/02). Closed. */
export const FAILURE_CODES = [
  'cpu_budget',
  'wall_backstop',
  'memory_limit',
  'disk_limit',
  'malformed_output',
  'liveness',
  'agent_start',
] as const;
const failureSchema = z.enum(FAILURE_CODES);
export type FailureCode = z.infer<typeof failureSchema>;

export const behaviouralVerdictSchema = z.enum(['ALLOW', 'WARN', 'BLOCK']);
export type BehaviouralVerdict = z.infer<typeof behaviouralVerdictSchema>;
const taskVerdictSchema = z.enum(['PASS', 'FAIL', 'ALLOW', 'WARN', 'BLOCK']);
export type TaskVerdict = z.infer<typeof taskVerdictSchema>;

const repValueSchema = z.union([
  z.strictObject({ reward_f64be: f64be }),
  z.strictObject({ verdict: behaviouralVerdictSchema }),
  z.strictObject({ score_f64be: f64be }),
]);
export type RepValue = z.infer<typeof repValueSchema>;

/** One repetition; times in ms, relative to the run's start. */
const repSchema = z.strictObject({
  /** 0-based. */
  rep: int,
  outcome: z.enum(['completed', 'failed']),
  value: repValueSchema.nullable(),
  failure: failureSchema.nullable(),
  started_ms: int,
  wall_ms: int,
  cpu_ms: int,
  memory_peak_bytes: int,
  oom_kills: int,
  throttled_ms: int,
  image_id: imageId,
  container_id: sha256,
  probe_sha256: sha256.nullable(),
  verifier_mode: verifierModeSchema.nullable(),
  start_retries: int,
});
export type RepRecord = z.infer<typeof repSchema>;

const limitsSchema = z.strictObject({
  nano_cpus: positiveInt,
  memory_bytes: positiveInt,
  storage_bytes: positiveInt,
  cpu_budget_ms: positiveInt,
  wall_budget_ms: positiveInt,
});
export type Limits = z.infer<typeof limitsSchema>;

export const imageSourceSchema = z.enum(['pulled', 'baked', 'built']);
export type ImageSource = z.infer<typeof imageSourceSchema>;

const taskRecordSchema = z.strictObject({
  task_id: taskId,
  image_source: imageSourceSchema,
  limits: limitsSchema,
  verdict: taskVerdictSchema.nullable(),
  score_f64be: f64be.nullable(),
  completed: int,
  reps: z.array(repSchema).min(1).max(64),
});
export type TaskRecord = z.infer<typeof taskRecordSchema>;

export const scoreRecordSchema = z.strictObject({
  schema_version: z.literal(2),
  eval_run_id: id,
  grant_id: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .nullable(),
  plan_digest: sha256,
  mechanism_digest: sha256,
  cache_digest: sha256,
  toolchain_digest: sha256.nullable(),
  track: id,
  r: positiveInt,
  ranked: z.boolean(),
  tasks: z.array(taskRecordSchema).min(1).max(1024),
  final: z.strictObject({
    score_f64be: f64be.nullable(),
    passed_tasks: int.nullable(),
    total_tasks: positiveInt,
  }),
  agent_runtime_image: imageRef.nullable(),
  dependencies: z.array(z.strictObject({ name: id, version: id, sha256 })).max(1024),
  machine: z.strictObject({ cpus: positiveInt, memory_bytes: positiveInt }),
  infra: z.strictObject({ faults: int, retried: int }),
});
export type ScoreRecord = z.infer<typeof scoreRecordSchema>;
