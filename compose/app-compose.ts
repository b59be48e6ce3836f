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

/** The exact bytes of app-compose.json: sorted, compact, null members left out. */
export function renderAppCompose(compose: EvalCompose): Buffer {
  const document = {
    allowed_envs: [...compose.envNames].sort(),
    docker_compose_file: dockerCompose(compose),
    features: ['kms'],
    gateway_enabled: false,
    kms_enabled: true,
    local_key_provider_enabled: false,
    manifest_version: 2,
    name: 'cvm-evaluator-eval',
    no_instance_id: false,
    public_logs: true,
    public_sysinfo: true,
    public_tcbinfo: true,
    runner: 'docker-compose',
    secure_time: true,
    storage_fs: 'ext4',
    tproxy_enabled: false,
  };
  return Buffer.from(JSON.stringify(document));
}

/** `compose_hash`: SHA-256 of exactly the deployed bytes. */
export function composeHash(appCompose: Buffer): string {
  return sha256Hex(appCompose);
}
