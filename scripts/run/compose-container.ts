import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { envName, imageDigestRef } from '../../guest/wire/scalars.ts';

const MAX_BYTES = 256 * 1024;

const mount = z
  .string()
  .regex(/^\/[^:]*:\/[^:]+(?::ro)?$/, 'source:target or source:target:ro, absolute')
  .transform((text) => {
    const [source = '', target = '', mode] = text.split(':');
    return { source, target, access: mode === 'ro' ? ('ro' as const) : ('rw' as const) };
  });

/** Closed: a key that is not applied below is refused, so that nothing of a compose is passed over. */
const service = z.strictObject({
  image: imageDigestRef,
  restart: z.literal('no'),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal('ALL')]),
  security_opt: z.array(z.string()),
  command: z.array(z.string()),
  environment: z.array(envName),
  volumes: z.array(mount),
});
const composeFile = z.strictObject({ services: z.record(z.string(), service) });
const appCompose = z.looseObject({ docker_compose_file: z.string() });

/** The one service of a compose, as an engine is told of it. */
export type ComposedService = z.infer<typeof service>;

/**
 * Reads the service of an app-compose, whichever mounts and variables it names.
 * @throws compose_mismatch when it says something that a container would not be given.
 */
export function readService(bytes: Buffer): ComposedService {
  try {
    const { docker_compose_file } = appCompose.parse(
      parseForeignJson(bytes, { maxBytes: MAX_BYTES, maxDepth: 4 }),
    );
    const parsed = composeFile.parse(parseYaml(docker_compose_file, { maxAliasCount: 0, logLevel: 'error' }));
    const [only, ...others] = Object.values(parsed.services);
    if (only === undefined || others.length > 0) throw new Error('not one service');
    return { ...only, command: only.command.map((word) => word.replaceAll('$$', '$')) };
  } catch (cause) {
    throw new EvaluatorError('compose_mismatch', 'app-compose: cannot be started as it stands', { cause });
  }
}

/** What a compose leaves to the machine that it is deployed on. */
export interface Deployment {
  /** The image that the compose names by digest, as this engine knows it. */
  imageId: string;
  /** Values of the variables that it names; one without a value is not set. */
  values: Readonly<Record<string, string>>;
  /** Where this machine has what a VM has at a mount's source. */
  sources: ReadonlyMap<string, string>;
  network: string;
  labels: Readonly<Record<string, string>>;
}

/** The engine's create document of a service: what the compose says, and nothing beside. */
export function containerBody(composed: ComposedService, deployment: Deployment): Record<string, unknown> {
  const { imageId, values, sources, network, labels } = deployment;
  const { read_only, cap_drop, security_opt, restart, command, environment, volumes } = composed;
  return {
    Image: imageId,
    Cmd: command,
    Env: environment.flatMap((name) => (Object.hasOwn(values, name) ? [`${name}=${values[name]}`] : [])),
    Labels: labels,
    HostConfig: {
      ReadonlyRootfs: read_only,
      CapDrop: cap_drop,
      SecurityOpt: security_opt,
      RestartPolicy: { Name: restart },
      NetworkMode: network,
      Mounts: volumes.map(({ source, target, access }) => ({
        Type: 'bind',
        Source: sources.get(source) ?? source,
        Target: target,
        ReadOnly: access === 'ro',
      })),
    },
  };
}
