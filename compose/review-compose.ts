import { encodeAppCompose } from './app-compose.ts';
import { renderDockerCompose } from './docker-compose.ts';

/** The variables of a review guest: confidential, and believed only as far as the assignment confirms them. */
export const REVIEW_ENV_NAMES = [
  'OPENROUTER_API_KEY',
  'REVIEW_API_BASE_URL',
  // Of a challenge whose CA is not a public one; base64url of its PEM.
  'REVIEW_SERVER_CA',
  'REVIEW_SESSION_TOKEN',
] as const;

/** What is deployed for a review guest; everything in it is measured (spec/06). */
export interface ReviewCompose {
  /** `repo@sha256:…` of the review image. */
  imageRef: string;
  planRoot: { publicKey: string; challengeId: string };
  /** Further arguments of a desk's guest; they are measured too, so that its reviews say where they are from. */
  localArguments: readonly string[];
  /** As in `EvalCompose`. */
  keyProviderId?: string | null;
}

/**
 * The exact bytes of its app-compose.json. No engine socket: an agent is read here, never run.
 * @throws schema_invalid.
 */
export function renderReviewCompose(compose: ReviewCompose): Buffer {
  const { imageRef, planRoot, localArguments, keyProviderId } = compose;
  const dockerCompose = renderDockerCompose({
    name: 'reviewer',
    imageRef,
    command: ['--plan-root', planRoot.publicKey, '--challenge-id', planRoot.challengeId, ...localArguments],
    envNames: REVIEW_ENV_NAMES,
    mounts: ['/var/run/dstack.sock:/var/run/dstack.sock'],
  });
  return encodeAppCompose({
    name: 'cvm-evaluator-review',
    dockerCompose,
    envNames: REVIEW_ENV_NAMES,
    keyProviderId: keyProviderId ?? null,
  });
}
