import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { envName, parseSchema } from '../wire/scalars.ts';
import { parseYaml } from '../wire/yaml.ts';
import type { AgentManifest } from './types.ts';

export const AGENT_MANIFEST_NAME = 'agent.yaml';

/**
 * Names that would steer the engine, the loader, Node or TLS (spec/06), those that we set ourselves, and those
 * that hand the guest its plan, run token and the key of its model: no agent ever sees these.
 */
const RESERVED_ENV =
  /^(?:COMPOSE|DOCKER|NODE|BASH|LD|SSL|DSTACK|TASK|EVAL|REVIEW|INFERENCE)_|_PROXY$|^AGENT_LOG_DIR$/i;

/** Whether a variable is one that no agent is ever given, whoever names it. */
export const isReservedEnv = (name: string): boolean => RESERVED_ENV.test(name);

const argument = z
  .string()
  .max(4096)
  .refine((text) => !/\p{Cc}/u.test(text), 'must have no control characters');

const manifestSchema = z.strictObject({
  schema_version: z.literal(1),
  kind: z.enum(['container', 'brokered']),
  command: z.array(argument).min(1).max(64),
  env: z
    .array(
      envName.refine((name) => !isReservedEnv(name), {
        error: ({ input }) => `${input} is reserved and never given to an agent`,
      }),
    )
    .max(64)
    .refine((names) => new Set(names).size === names.length, 'must name each variable once'),
});

/**
 * Reads `agent.yaml`: YAML by the rules of `parseYaml`, in a closed schema.
 * @throws agent_manifest_invalid, naming the field.
 */
export function parseAgentManifest(bytes: Uint8Array): AgentManifest {
  const value = parseYaml(bytes, AGENT_MANIFEST_NAME, 'agent_manifest_invalid');
  try {
    return parseSchema(manifestSchema, value, AGENT_MANIFEST_NAME);
  } catch (cause) {
    throw new EvaluatorError('agent_manifest_invalid', (cause as Error).message, { cause });
  }
}

/** The variables that an agent is given, of those that the plan allows: the ones it asks for. */
export function givenEnv({ env }: Pick<AgentManifest, 'env'>, allowed: readonly string[]): readonly string[] {
  const asked = env === 'plan' ? allowed.filter((name) => !isReservedEnv(name)) : env;
  return asked.filter((name) => allowed.includes(name));
}
