import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { sha256Hex } from './digest.ts';
import { inferenceSchema } from './inference.ts';
import { packageIndexSchema } from './package-index.ts';
import { type Network, networkSchema } from './plan.ts';
import { int, parseSchema, positiveInt } from './scalars.ts';
import { parseYaml } from './yaml.ts';

const version = z.string().regex(/^\d+(\.\d+){1,2}$/, 'must be a version like 25.0.3');

const floorSchema = z.strictObject({
  version,
  /** What the floor answers: CVE ids. */
  answers: z.array(z.string().regex(/^CVE-\d{4}-\d{4,}$/)),
});

const isClosed = (names: readonly Network[]) => !names.includes('open');
const networks = z.array(networkSchema).min(1);

const trackRulesSchema = z.strictObject({
  /** How many tasks a ranked plan has, and a calibration plan at the most; or `plan`: the plan says. */
  tasks_per_round: z.union([z.literal('plan'), positiveInt.max(1024)]),
  /** Reps per task, or `plan`: the plan says. */
  r: z.union([z.literal('plan'), positiveInt.max(64)]),
  policy: z.enum(['plan', 'vote', 'mean']).nullable(),
  failed_reps: z.enum(['excluded', 'counted']),
  min_completed: positiveInt,
  /** `task`: the task's agent.timeout_sec (× cpus for CPU), unless the plan pins a budget. */
  cpu_budget_ms: z.union([z.literal('task'), positiveInt]),
  wall_budget_ms: z.union([z.literal('task'), positiveInt]),
  /** `task`: the task's environment.cpus and environment.memory_mb. Never any swap. */
  cpus: z.union([z.literal('task'), positiveInt.max(1024)]),
  memory_mb: z.union([z.literal('task'), positiveInt.max(16 * 1024 * 1024)]),
  pids: positiveInt,
  /** What a plan may give its tasks; an open network is for calibration alone (spec/02). */
  networks: z.strictObject({
    ranked: networks.refine(isClosed, 'must not name open'),
    calibration: networks,
  }),
  metric: z.enum(['pass_rate', 'clamped_mcc', 'f2']),
  /** The least score that is eligible for weight; null: any. */
  cut: z.number().min(0).max(1).nullable(),
});
export type TrackRules = z.infer<typeof trackRulesSchema>;

const mechanismSchema = z.strictObject({
  schema_version: z.literal(1),
  /** What runs trials must be at least; a desk's mechanism may ask for less, and then says so by its digest. */
  floors: z.strictObject({ api: version, engine: floorSchema, runc: floorSchema }),
  /** How often a failing call is retried before an agent's exec (spec/02). */
  max_start_retries: int.max(8),
  reserve: z.strictObject({
    /** Memory kept for the guest before packing. */
    memory_mb: positiveInt,
    disk_mb: positiveInt,
    /** CPU weight of a trial container; the guest's own is the engine's default, 1024. */
    trial_cpu_shares: positiveInt.min(2).max(1024),
  }),
  /** What a run with `ranked: false` weighs: it runs and reports, and counts for nothing (spec/02). */
  calibration_weight: z.literal(0),
  /** null: no plan may have `network: inference`. */
  inference: inferenceSchema.nullable(),
  /** null: no agent may have a `requirements.txt`. */
  packages: packageIndexSchema.nullable(),
  tracks: z.record(z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/), trackRulesSchema),
});
export type Mechanism = z.infer<typeof mechanismSchema>;

/** A mechanism document with the digest of its exact bytes. */
export interface PinnedMechanism {
  mechanism: Mechanism;
  digest: string;
}

/**
 * Reads a mechanism document (spec/02): YAML by the rules of `parseYaml`, in a closed schema.
 * @throws mechanism_invalid, schema_invalid.
 */
export function parseMechanism(bytes: Uint8Array): PinnedMechanism {
  const value = parseYaml(bytes, 'mechanism', 'mechanism_invalid');
  return { mechanism: parseSchema(mechanismSchema, value, 'mechanism'), digest: sha256Hex(bytes) };
}

/** The rules of a track. @throws track_unknown: an unknown track is refused, never defaulted. */
export function trackRules(mechanism: Mechanism, track: string): TrackRules {
  const rules = Object.hasOwn(mechanism.tracks, track) ? mechanism.tracks[track] : undefined;
  if (!rules)
    throw new EvaluatorError(
      'track_unknown',
      `mechanism: no track "${track}"; known: ${Object.keys(mechanism.tracks).join(', ')}`,
    );
  return rules;
}
