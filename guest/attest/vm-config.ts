import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { VmShape } from '../wire/measurement.ts';
import { positiveInt } from '../wire/scalars.ts';

const BYTES_PER_MB = 1024 * 1024;
const LIMITS = { maxBytes: 64 * 1024, maxDepth: 16 };

// Open: it also describes disks, GPUs and the image; releases spell the two numbers differently (spec/01).
const rawVmConfig = z.object({
  vcpu: positiveInt.optional(),
  cpu_count: positiveInt.optional(),
  memory_mb: positiveInt.optional(),
  memory_size: positiveInt.multipleOf(BYTES_PER_MB).optional(),
});

function invalid(problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('vm_config_invalid', `vm_config: ${problem}`, { cause });
}

/** The one value that the spellings present agree on. */
function agreed(name: string, spellings: readonly (number | undefined)[]): number {
  const [value, ...others] = new Set(spellings.filter((spelling) => spelling !== undefined));
  if (value === undefined) throw invalid(`no ${name}`);
  if (others.length > 0) throw invalid(`two different values of ${name}`);
  return value;
}

/**
 * The VM's shape from the guest agent's vm_config (JSON text): vcpu or cpu_count; memory_mb, or memory_size in bytes.
 * @throws vm_config_invalid.
 */
export function parseVmConfig(text: string): VmShape {
  let value: unknown;
  try {
    value = parseForeignJson(Buffer.from(text), LIMITS);
  } catch (cause) {
    throw invalid('not readable JSON', cause);
  }
  const parsed = rawVmConfig.safeParse(value);
  if (!parsed.success) throw invalid(`${parsed.error.issues[0]?.path.join('.') || 'document'} is malformed`);
  const { vcpu, cpu_count, memory_mb, memory_size } = parsed.data;
  const fromBytes = memory_size === undefined ? undefined : memory_size / BYTES_PER_MB;
  return { vcpu: agreed('vcpu', [vcpu, cpu_count]), memory_mb: agreed('memory_mb', [memory_mb, fromBytes]) };
}
