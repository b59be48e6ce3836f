import { sha256Hex } from '../guest/wire/digest.ts';
import { initScript, PRE_LAUNCH_SCRIPT } from './boot-scripts.ts';
import { renderDockerCompose } from './docker-compose.ts';
import { allowedEnvNames } from './env-names.ts';

/** The variables of every eval guest; an agent's own come beside them. */
export const EVAL_ENV_NAMES = ['EVAL_PLAN', 'EVAL_RUN_TOKEN'] as const;

/** What is deployed for an eval guest; everything in it is measured (spec/06). */
export interface EvalCompose {
  /** `repo@sha256:…` of the guest image. */
  imageRef: string;
  planRoot: { publicKey: string; challengeId: string };
  /** Names of the encrypted variables; values never appear here. */
  envNames: readonly string[];
  /** The KMS that the VM insists on, as hex; null or absent where there is none to name, as at a desk. */
  keyProviderId?: string | null;
}

/**
 * What both images are deployed with; each adds its name, its compose and its variables. Every key is
 * written out: a cloud fills in an absent one by itself, and the hash with it (spec/06).
 */
const COMMON = {
  features: ['kms'],
  gateway_enabled: false,
  kms_enabled: true,
  local_key_provider_enabled: false,
  manifest_version: 2,
  no_instance_id: false,
  pre_launch_script: PRE_LAUNCH_SCRIPT,
  public_logs: true,
  public_sysinfo: true,
  public_tcbinfo: true,
  runner: 'docker-compose',
  secure_time: true,
  storage_fs: 'ext4',
  tproxy_enabled: false,
} as const;

function sortedWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedWithoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, member]) => [key, sortedWithoutNulls(member)]),
  );
}

/** The bytes that a document is deployed as: sorted, compact, null members left out. */
export function canonicalAppCompose(document: unknown): Buffer {
  return Buffer.from(JSON.stringify(sortedWithoutNulls(document)));
}

/**
 * The exact bytes of an app-compose.json.
 * @throws env_name_refused.
 */
export function encodeAppCompose(own: {
  name: string;
  dockerCompose: string;
  envNames: readonly string[];
  keyProviderId?: string | null;
}): Buffer {
  const envNames = allowedEnvNames(own.envNames);
  return canonicalAppCompose({
    ...COMMON,
    allowed_envs: envNames,
    docker_compose_file: own.dockerCompose,
    init_script: initScript(envNames),
    key_provider_id: own.keyProviderId ?? null,
    name: own.name,
  });
}

/**
 * The exact bytes of the eval guest's app-compose.json.
 * @throws env_name_refused, schema_invalid.
 */
export function renderAppCompose(compose: EvalCompose): Buffer {
  const { imageRef, planRoot, keyProviderId } = compose;
  const envNames = allowedEnvNames(compose.envNames);
  const dockerCompose = renderDockerCompose({
    name: 'evaluator',
    imageRef,
    command: ['--plan-root', planRoot.publicKey, '--challenge-id', planRoot.challengeId],
    envNames,
    mounts: [
      '/var/run/docker.sock:/var/run/docker.sock',
      '/var/run/dstack.sock:/var/run/dstack.sock',
      '/sys/fs/cgroup:/sys/fs/cgroup:ro',
    ],
  });
  return encodeAppCompose({
    name: 'cvm-evaluator-eval',
    dockerCompose,
    envNames,
    keyProviderId: keyProviderId ?? null,
  });
}

/** `compose_hash`: SHA-256 of exactly the deployed bytes. */
export function composeHash(appCompose: Buffer): string {
  return sha256Hex(appCompose);
}
