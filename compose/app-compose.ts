import { sha256Hex } from '../guest/wire/digest.ts';

/** What is deployed for an eval guest; everything in it is measured (spec/06). */
export interface EvalCompose {
  /** `repo@sha256:…` of the guest image. */
  imageRef: string;
  planRoot: { publicKey: string; challengeId: string };
  /** Names of the encrypted variables; values never appear here. */
  envNames: readonly string[];
}

function dockerCompose({ imageRef, planRoot, envNames }: EvalCompose): string {
  return [
    'services:',
    '  evaluator:',
    `    image: ${imageRef}`,
    '    restart: "no"',
    `    command: ["--plan-root", "${planRoot.publicKey}", "--challenge-id", "${planRoot.challengeId}"]`,
    '    environment:',
    ...envNames.map((name) => `      - ${name}`),
    '    volumes:',
    '      - /var/run/docker.sock:/var/run/docker.sock',
    '      - /var/run/dstack.sock:/var/run/dstack.sock',
    '      - /sys/fs/cgroup:/sys/fs/cgroup:ro',
    '',
  ].join('\n');
}

/** What both images are deployed with; each adds its name, its compose and its variables. */
const COMMON = {
  features: ['kms'],
  gateway_enabled: false,
  kms_enabled: true,
  local_key_provider_enabled: false,
  manifest_version: 2,
  no_instance_id: false,
  public_logs: true,
  public_sysinfo: true,
  public_tcbinfo: true,
  runner: 'docker-compose',
  secure_time: true,
  storage_fs: 'ext4',
  tproxy_enabled: false,
} as const;

/** The exact bytes of an app-compose.json: sorted, compact, null members left out. */
export function encodeAppCompose(own: {
  name: string;
  dockerCompose: string;
  envNames: readonly string[];
}): Buffer {
  const document: Record<string, unknown> = {
    ...COMMON,
    allowed_envs: [...own.envNames].sort(),
    docker_compose_file: own.dockerCompose,
    name: own.name,
  };
  const sorted = Object.entries(document).sort(([one], [other]) => (one < other ? -1 : 1));
  return Buffer.from(JSON.stringify(Object.fromEntries(sorted)));
}

/** The exact bytes of the eval guest's app-compose.json. */
export function renderAppCompose(compose: EvalCompose): Buffer {
  const { envNames } = compose;
  return encodeAppCompose({ name: 'cvm-evaluator-eval', dockerCompose: dockerCompose(compose), envNames });
}

/** `compose_hash`: SHA-256 of exactly the deployed bytes. */
export function composeHash(appCompose: Buffer): string {
  return sha256Hex(appCompose);
}
