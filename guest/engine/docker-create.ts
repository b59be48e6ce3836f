import type { ContainerSpec, ExecSpec } from './port.ts';

/** Above the daemon's own limit every start fails (spec/03, 2). */
const OPEN_FILES = 16384;

/** The engine's create document for `spec`: everything an image could bring along is overridden. */
export function createBody(spec: ContainerSpec): Record<string, unknown> {
  return {
    Image: spec.image,
    Entrypoint: [],
    Cmd: spec.command,
    Env: spec.env,
    WorkingDir: spec.workingDir,
    User: '0',
    Labels: spec.labels,
    Healthcheck: { Test: ['NONE'] },
    Tty: false,
    OpenStdin: false,
    StdinOnce: false,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    HostConfig: {
      CapDrop: ['ALL'],
      CapAdd: spec.capAdd,
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      Init: false,
      AutoRemove: false,
      PidsLimit: spec.pids,
      Memory: spec.memoryBytes,
      MemorySwap: spec.memoryBytes,
      NanoCpus: spec.nanoCpus,
      CpuShares: spec.cpuShares,
      Ulimits: ulimits(spec).map(([Name, limit]) => ({ Name, Soft: limit, Hard: limit })),
      IpcMode: 'private',
      LogConfig: { Type: 'none' },
      RestartPolicy: { Name: 'no' },
      NetworkMode: spec.network,
      Dns: nameServers(spec),
      Mounts: toolsMount(spec),
    },
  };
}

/** The engine's document for one exec: both outputs attached, stdin closed unless it is asked for. */
export function execBody(spec: ExecSpec): Record<string, unknown> {
  return {
    Cmd: spec.command,
    Env: spec.env,
    WorkingDir: spec.workingDir,
    User: spec.user,
    AttachStdin: spec.stdin === 'open',
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    Privileged: false,
  };
}

/** Name and value (soft and hard) of every limit that is set. */
export function ulimits(spec: ContainerSpec): readonly (readonly [string, number])[] {
  return [
    ['nofile', OPEN_FILES],
    ['core', 0],
    ['fsize', spec.fileSizeBytes],
  ];
}

/** The container's own loopback, where nobody answers. */
export function nameServers({ dns }: ContainerSpec): readonly string[] {
  return dns === 'none' ? ['127.0.0.1'] : [];
}

function toolsMount({ toolsVolume }: ContainerSpec): object[] {
  if (toolsVolume === null) return [];
  return [
    {
      Type: 'volume',
      Source: toolsVolume.name,
      Target: toolsVolume.target,
      ReadOnly: toolsVolume.access === 'ro',
      VolumeOptions: { NoCopy: true },
    },
  ];
}
