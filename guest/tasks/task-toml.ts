import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { envName, id } from '../wire/scalars.ts';
import { artifactPathsProblem } from './artifact-paths.ts';
import { parseSizeMb } from './size.ts';
import type { TaskConfig } from './types.ts';

const MAX_TASK_TOML_BYTES = 256 * 1024;

/**
 * What a task may ask for beyond the set every trial has (spec/03). Without those that reach the kernel, other
 * processes' memory or the network's set-up, and without SYS_RESOURCE and SYS_NICE, which lift the trial's limits.
 */
const ADDITIONAL_CAPABILITIES = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW', 'SETFCAP'] as const;

const seconds = z
  .number()
  .positive()
  .max(7 * 24 * 3600);
const mebibytes = z
  .int()
  .positive()
  .max(16 * 1024 * 1024);
const environmentVariables = z.record(
  envName,
  z
    .string()
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .refine((value) => !/\$\{/.test(value), "must be the value itself: the host's environment is not read"),
);

// Loose at every level: real tasks carry more keys than this project reads.
const taskTomlSchema = z.looseObject({
  /** Ours: what the task is scored by. A published Terminal-Bench task says nothing. */
  track: id.default('terminal-bench'),
  verifier: z
    .looseObject({
      timeout_sec: seconds.default(600),
      env: environmentVariables.default({}),
      mode: z.enum(['artifact', 'restart', 'live']).default('restart'),
      artifact_paths: z.array(z.string()).default([]),
    })
    .prefault({}),
  agent: z.looseObject({ timeout_sec: seconds.default(600) }).prefault({}),
  environment: z
    .looseObject({
      build_timeout_sec: seconds.default(600),
      docker_image: z.string().min(1).max(512).optional(),
      cpus: z.int().positive().max(1024).default(1),
      memory_mb: mebibytes.optional(),
      memory: z.string().optional(),
      storage_mb: mebibytes.optional(),
      storage: z.string().optional(),
      gpus: z.int().nonnegative().default(0),
      allow_internet: z.boolean().default(true),
      env: environmentVariables.default({}),
      cap_add: z.array(z.enum(ADDITIONAL_CAPABILITIES)).default([]),
    })
    .prefault({}),
});

function invalid(file: string, problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('task_toml_invalid', `${file}: ${problem}`, { cause });
}

function readToml(bytes: Uint8Array, file: string): unknown {
  if (bytes.byteLength > MAX_TASK_TOML_BYTES)
    throw invalid(file, `${bytes.byteLength} bytes, at most ${MAX_TASK_TOML_BYTES} are read`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw invalid(file, 'not UTF-8', cause);
  }
  try {
    return parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw invalid(file, cause instanceof TomlError ? `line ${cause.line}: ${reason}` : `${reason}`, cause);
  }
}

function sizeOf(
  file: string,
  key: string,
  mb: number | undefined,
  text: string | undefined,
  fallback: number,
) {
  if (text === undefined) return mb ?? fallback;
  if (mb !== undefined) throw invalid(file, `environment.${key}: given twice, also as ${key}_mb; keep one`);
  const parsed = parseSizeMb(text);
  if (parsed === null)
    throw invalid(
      file,
      `environment.${key}: must be a size such as "2G" or "512M", not ${JSON.stringify(text.slice(0, 40))}`,
    );
  return parsed;
}

/**
 * Reads a task.toml (schema 1.0 and 1.1). Times in seconds, sizes in MiB; unknown keys are ignored.
 * @param file how messages call the file.
 * @throws task_toml_invalid naming the key and what it must be.
 */
export function parseTaskToml(bytes: Uint8Array, file: string): TaskConfig {
  const parsed = taskTomlSchema.safeParse(readToml(bytes, file));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(
      file,
      `${issue?.path.map(String).join('.') || 'the document'}: ${issue?.message ?? 'invalid'}`,
    );
  }
  const { track, verifier, agent, environment } = parsed.data;
  const problem = artifactPathsProblem(verifier.artifact_paths);
  if (problem !== null) throw invalid(file, `verifier.artifact_paths: ${problem}`);
  return {
    track,
    verifier: {
      timeoutSec: verifier.timeout_sec,
      env: verifier.env,
      mode: verifier.mode,
      artifactPaths: verifier.artifact_paths,
    },
    agent: { timeoutSec: agent.timeout_sec },
    environment: {
      buildTimeoutSec: environment.build_timeout_sec,
      dockerImage: environment.docker_image ?? null,
      cpus: environment.cpus,
      memoryMb: sizeOf(file, 'memory', environment.memory_mb, environment.memory, 2048),
      storageMb: sizeOf(file, 'storage', environment.storage_mb, environment.storage, 10240),
      gpus: environment.gpus,
      allowInternet: environment.allow_internet,
      env: environment.env,
      capAdd: environment.cap_add,
    },
  };
}
