import { imageDigestRef, parseSchema } from '../guest/wire/scalars.ts';

/** The one service of an image's compose; everything in it is measured (spec/06). */
export interface Service {
  name: string;
  /** `repo@sha256:…`. */
  imageRef: string;
  /** Literals: what the compose says is what the guest is started with. */
  command: readonly string[];
  /** Sorted names; values never appear here. */
  envNames: readonly string[];
  /** `source:target[:ro]`, nothing else of the VM is seen by the guest. */
  mounts: readonly string[];
}

/** A YAML scalar that nobody interpolates: compose reads `$` as the start of a variable, `$$` as itself. */
function literal(text: string): string {
  return JSON.stringify(text.replaceAll('$', '$$$$'));
}

/**
 * A docker-compose file with one service: no port, no restart, no capability, a read-only root file system.
 * @throws schema_invalid of an image that is not named by digest.
 */
export function renderDockerCompose({ name, imageRef, command, envNames, mounts }: Service): string {
  return [
    'services:',
    `  ${name}:`,
    `    image: ${parseSchema(imageDigestRef, imageRef, 'compose, image')}`,
    '    restart: "no"',
    '    read_only: true',
    '    cap_drop: ["ALL"]',
    '    security_opt: ["no-new-privileges:true"]',
    `    command: [${command.map(literal).join(', ')}]`,
    '    environment:',
    ...envNames.map((env) => `      - ${JSON.stringify(env)}`),
    '    volumes:',
    ...mounts.map((mount) => `      - ${mount}`),
    '',
  ].join('\n');
}
