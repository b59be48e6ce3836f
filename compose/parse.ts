import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { EvaluatorError } from '../guest/errors.ts';
import { parseForeignJson } from '../guest/wire/foreign-json.ts';
import { hex, imageDigestRef } from '../guest/wire/scalars.ts';
import { type EvalCompose, renderAppCompose } from './app-compose.ts';
import { type ReviewCompose, renderReviewCompose } from './review-compose.ts';

export const MAX_APP_COMPOSE_BYTES = 256 * 1024;

/** What an app-compose of ours says. */
export type Composed =
  | ({ role: 'eval' } & Required<EvalCompose>)
  | ({ role: 'review' } & Required<ReviewCompose>);

const document = z.looseObject({
  docker_compose_file: z.string(),
  allowed_envs: z.array(z.string()),
  key_provider_id: hex.optional(),
});
const service = z.looseObject({ image: imageDigestRef, command: z.array(z.string()).min(4) });
const services = z.union([
  z.strictObject({ services: z.strictObject({ evaluator: service }) }),
  z.strictObject({ services: z.strictObject({ reviewer: service }) }),
]);

function mismatch(problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('compose_mismatch', `app-compose: ${problem}`, { cause });
}

/** The exact bytes of what `parseAppCompose` returns. @throws env_name_refused, schema_invalid. */
export function renderComposed(composed: Composed): Buffer {
  return composed.role === 'eval' ? renderAppCompose(composed) : renderReviewCompose(composed);
}

/** Reads only what varies; the comparison of the bytes judges everything else. */
function read(bytes: Buffer): Composed {
  const { docker_compose_file, allowed_envs, key_provider_id } = document.parse(
    parseForeignJson(bytes, { maxBytes: MAX_APP_COMPOSE_BYTES, maxDepth: 4 }),
  );
  const { services: one } = services.parse(
    parseYaml(docker_compose_file, { maxAliasCount: 0, logLevel: 'error' }),
  );
  const { image: imageRef, command } = 'evaluator' in one ? one.evaluator : one.reviewer;
  const [, publicKey = '', , challengeId = '', ...localArguments] = command.map((word) =>
    word.replaceAll('$$', '$'),
  );
  const planRoot = { publicKey, challengeId };
  const keyProviderId = key_provider_id ?? null;
  return 'evaluator' in one
    ? { role: 'eval', imageRef, planRoot, envNames: allowed_envs, keyProviderId }
    : { role: 'review', imageRef, planRoot, localArguments, keyProviderId };
}

/**
 * Reads an app-compose of ours and renders it anew: what is returned says everything that the bytes say, or
 * they are refused.
 * @throws compose_mismatch.
 */
export function parseAppCompose(bytes: Buffer): Composed {
  let composed: Composed;
  let rendered: Buffer;
  try {
    composed = read(bytes);
    rendered = renderComposed(composed);
  } catch (cause) {
    throw mismatch('is not of one of our images', cause);
  }
  if (!rendered.equals(bytes)) throw mismatch(firstDifference(bytes, rendered));
  return composed;
}

/** Where two app-composes part, by the name of the member if it can be told. */
export function firstDifference(found: Buffer, expected: Buffer): string {
  const members = (bytes: Buffer): Record<string, unknown> => {
    try {
      return z.record(z.string(), z.unknown()).parse(JSON.parse(bytes.toString()));
    } catch {
      return {};
    }
  };
  const [one, other] = [members(found), members(expected)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  const name = names.find((key) => JSON.stringify(one[key]) !== JSON.stringify(other[key]));
  return name === undefined ? 'its bytes are not the canonical ones' : `${name} differs`;
}
