import { EVAL_ENV_NAMES } from '../../compose/app-compose.ts';
import type { Composed } from '../../compose/parse.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { ed25519PublicKey, hex, id, imageDigestRef, parseSchema } from '../../guest/wire/scalars.ts';
import { nameList, required } from './arguments.ts';

/** The options that say what is deployed; `compose` and `measure` share them. */
export const COMPOSE_OPTIONS = {
  image: { type: 'string' },
  role: { type: 'string' },
  'plan-root': { type: 'string' },
  'challenge-id': { type: 'string' },
  'agent-env': { type: 'string', multiple: true },
  'key-provider-id': { type: 'string' },
} as const;

export const COMPOSE_HELP = `  --image REF            the guest image, repo@sha256:…
  --role eval|review     which guest it is (default: eval)
  --plan-root HEX        the key that the challenge's plans are signed under
  --challenge-id ID      the challenge's name
  --agent-env NAME,…     further variables of an eval guest: those of the agent
  --key-provider-id HEX  the KMS that the VM insists on; name it for every real deployment`;

interface ComposeValues {
  image?: string | undefined;
  role?: string | undefined;
  'plan-root'?: string | undefined;
  'challenge-id'?: string | undefined;
  'agent-env'?: string[] | undefined;
  'key-provider-id'?: string | undefined;
}

/** What the options describe. @throws usage, schema_invalid. */
export function readComposed(values: ComposeValues, usage: string): Composed {
  const imageRef = parseSchema(imageDigestRef, required(values.image, 'image', usage), '--image');
  const planRoot = {
    publicKey: parseSchema(
      ed25519PublicKey,
      required(values['plan-root'], 'plan-root', usage),
      '--plan-root',
    ),
    challengeId: parseSchema(id, required(values['challenge-id'], 'challenge-id', usage), '--challenge-id'),
  };
  const kms = values['key-provider-id'];
  const keyProviderId = kms === undefined ? null : parseSchema(hex.min(2), kms, '--key-provider-id');
  const agentEnv = nameList(values['agent-env']);
  const role = values.role ?? 'eval';
  if (role === 'eval') {
    return { role, imageRef, planRoot, envNames: [...EVAL_ENV_NAMES, ...agentEnv], keyProviderId };
  }
  if (role !== 'review') {
    throw new EvaluatorError('usage', `--role ${JSON.stringify(role)}: eval or review\nusage: ${usage}`);
  }
  if (agentEnv.length > 0) throw new EvaluatorError('usage', '--agent-env: a review runs no agent');
  return { role, imageRef, planRoot, localArguments: [], keyProviderId };
}
