import { isDeepStrictEqual } from 'node:util';
import { EvaluatorError } from '../errors.ts';
import { nameServers, ulimits } from './docker-create.ts';
import type { ContainerSpec } from './port.ts';

type Check = readonly [field: string, holds: (found: unknown) => boolean];

/**
 * Compares the engine's inspect document of a new container with what was asked (spec/03, 2). Throws
 * `container_not_as_asked` with the name of the first field that differs; never a value, which could be a
 * secret of the environment.
 */
export function verifyCreated(spec: ContainerSpec, raw: Readonly<Record<string, unknown>>): void {
  for (const [field, holds] of checks(spec)) {
    if (!holds(lookUp(raw, field))) {
      throw new EvaluatorError(
        'container_not_as_asked',
        `container ${spec.name}: the engine made one whose ${field} is not what was asked for`,
      );
    }
  }
}

function checks(spec: ContainerSpec): readonly Check[] {
  const [program, ...args] = spec.command;
  return [
    ['Name', is(`/${spec.name}`)],
    ['Image', spec.image.startsWith('sha256:') ? is(spec.image) : isText],
    ['Path', is(program)],
    ['Args', is(args)],
    ['Mounts', mountedAs(spec)],
    ['NetworkSettings.Networks', hasOnlyKeys([spec.network])],
    ['Config.Entrypoint', isEmpty],
    ['Config.Cmd', is(spec.command)],
    ['Config.Env', hasEnv(spec.env)],
    ['Config.Labels', hasLabels(spec.labels)],
    ['Config.User', is('0')],
    ['Config.WorkingDir', spec.workingDir === '' ? isText : is(spec.workingDir)],
    ['Config.Healthcheck.Test', is(['NONE'])],
    ['Config.Volumes', isEmpty],
    ['Config.Tty', isEmpty],
    ['Config.OpenStdin', isEmpty],
    ['HostConfig.CapDrop', isSetOf(['ALL'])],
    ['HostConfig.CapAdd', isSetOf(spec.capAdd)],
    ['HostConfig.SecurityOpt', isSetOf(['NO-NEW-PRIVILEGES'])],
    ['HostConfig.PidsLimit', is(spec.pids)],
    ['HostConfig.Memory', is(spec.memoryBytes)],
    ['HostConfig.MemorySwap', is(spec.memoryBytes)],
    ['HostConfig.NanoCpus', is(spec.nanoCpus)],
    ['HostConfig.CpuShares', is(spec.cpuShares)],
    ['HostConfig.Ulimits', hasUlimits(spec)],
    ['HostConfig.IpcMode', is('private')],
    ['HostConfig.LogConfig.Type', is('none')],
    ['HostConfig.NetworkMode', is(spec.network)],
    ['HostConfig.Dns', isSetOf(nameServers(spec))],
    ['HostConfig.RestartPolicy.Name', is('no')],
    ['HostConfig.Mounts', copiesNothing],
    ...UNASKED.map((name): Check => [`HostConfig.${name}`, isEmpty]),
  ];
}

/** What would widen the sandbox and is never asked for. */
const UNASKED = [
  'Privileged',
  'Binds',
  'VolumesFrom',
  'Tmpfs',
  'Devices',
  'DeviceRequests',
  'DeviceCgroupRules',
  'PidMode',
  'UTSMode',
  'UsernsMode',
  'GroupAdd',
  'CgroupParent',
  'Cgroup',
  'Sysctls',
  'PortBindings',
  'PublishAllPorts',
  'ExtraHosts',
  'Links',
  'OomKillDisable',
  'OomScoreAdj',
  'AutoRemove',
  'Init',
  'CpuPeriod',
  'CpuQuota',
  'CpusetCpus',
  'CpuRealtimePeriod',
  'CpuRealtimeRuntime',
] as const;

function is(expected: unknown) {
  return (found: unknown) => isDeepStrictEqual(found, expected);
}

const isText = (found: unknown) => typeof found === 'string';

function isEmpty(found: unknown): boolean {
  if (typeof found === 'object' && found !== null) return Object.keys(found).length === 0;
  return found === undefined || found === null || found === '' || found === false || found === 0;
}

/** Equal as sets, whichever of its spellings the engine uses: CAP_CHOWN, `no-new-privileges:true`. */
function isSetOf(expected: readonly string[]) {
  const spelling = (item: unknown) =>
    String(item)
      .toUpperCase()
      .replace(/^CAP_/, '')
      .replace(/[:=]TRUE$/, '');
  const sorted = (items: readonly unknown[]) => [...new Set(items.map(spelling))].sort();
  return (found: unknown) => isDeepStrictEqual(sorted(list(found)), sorted(expected));
}

/** Each asked variable is there, once; the others are the image's. */
function hasEnv(expected: readonly string[]) {
  const name = (entry: unknown) => String(entry).split('=', 1)[0];
  return (found: unknown) =>
    expected.every((entry) =>
      isDeepStrictEqual(
        list(found).filter((candidate) => name(candidate) === name(entry)),
        [entry],
      ),
    );
}

function hasLabels(expected: Readonly<Record<string, string>>) {
  return (found: unknown) =>
    Object.entries(expected).every(([key, value]) => isObject(found) && found[key] === value);
}

function hasOnlyKeys(allowed: readonly string[]) {
  return (found: unknown) => Object.keys(isObject(found) ? found : {}).every((key) => allowed.includes(key));
}

function hasUlimits(spec: ContainerSpec) {
  const expected = ulimits(spec).map(([name, limit]) => `${name}=${limit}:${limit}`);
  return (found: unknown) =>
    isDeepStrictEqual(
      list(found)
        .map((limit) => (isObject(limit) ? `${limit.Name}=${limit.Soft}:${limit.Hard}` : ''))
        .sort(),
      expected.sort(),
    );
}

function mountedAs({ toolsVolume }: ContainerSpec) {
  const expected =
    toolsVolume === null
      ? []
      : [['volume', toolsVolume.name, toolsVolume.target, toolsVolume.access === 'rw'] as const];
  return (found: unknown) =>
    isDeepStrictEqual(
      list(found).map((mount) =>
        isObject(mount) ? [mount.Type, mount.Name, mount.Destination, mount.RW] : [],
      ),
      expected,
    );
}

const copiesNothing = (found: unknown) =>
  list(found).every((mount) => lookUp(mount, 'VolumeOptions.NoCopy') === true);

function lookUp(document: unknown, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), document);
}

function list(found: unknown): readonly unknown[] {
  return Array.isArray(found) ? found : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
