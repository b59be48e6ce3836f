import { parseDocument } from 'yaml';
import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { envName, parseSchema } from '../wire/scalars.ts';
import type { AgentManifest } from './types.ts';

export const AGENT_MANIFEST_NAME = 'agent.yaml';
const MAX_YAML_BYTES = 256 * 1024;

/** Names that would steer the engine, the loader, Node or TLS (spec/06), and those that we set ourselves. */
const RESERVED_ENV = /^(?:COMPOSE|DOCKER|NODE|BASH|LD|SSL|DSTACK|TASK)_|_PROXY$|^AGENT_LOG_DIR$/i;

const argument = z
  .string()
  .max(4096)
  .refine((text) => !/\p{Cc}/u.test(text), 'must have no control characters');

const manifestSchema = z.strictObject({
  schema_version: z.literal(1),
  kind: z.literal('container'),
  command: z.array(argument).min(1).max(64),
  env: z
    .array(envName.refine((name) => !RESERVED_ENV.test(name), 'is reserved and never given to an agent'))
    .max(64)
    .refine((names) => new Set(names).size === names.length, 'must name each variable once'),
});

function invalid(what: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('agent_manifest_invalid', `${AGENT_MANIFEST_NAME}: ${what}`, { cause });
}

/**
 * Reads `agent.yaml`: YAML 1.2 core, no key twice, no alias, no unknown tag, at most 256 KiB (spec/08).
 * @throws agent_manifest_invalid, naming the field.
 */
export function parseAgentManifest(bytes: Uint8Array): AgentManifest {
  if (bytes.byteLength > MAX_YAML_BYTES) throw invalid(`larger than ${MAX_YAML_BYTES} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw invalid('not UTF-8', cause);
  }
  const document = parseDocument(text, { version: '1.2', uniqueKeys: true, strict: true });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem) throw invalid(problem.message);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch (cause) {
    throw invalid('aliases are not allowed', cause);
  }
  try {
    return parseSchema(manifestSchema, value, AGENT_MANIFEST_NAME);
  } catch (cause) {
    throw new EvaluatorError('agent_manifest_invalid', (cause as Error).message, { cause });
  }
}
