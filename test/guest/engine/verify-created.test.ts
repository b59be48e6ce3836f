import { describe, expect, it } from 'vitest';
import type { ContainerSpec } from '../../../guest/engine/port.ts';
import { verifyCreated } from '../../../guest/engine/verify-created.ts';

const IMAGE = `sha256:${'1'.repeat(64)}`;

const SPEC: ContainerSpec = {
  name: 'trial',
  image: IMAGE,
  command: ['/opt/evaluator/busybox', 'sh'],
  env: ['HOME=/root', 'TOKEN=secret-value'],
  workingDir: '/',
  labels: { owner: 'us' },
  capAdd: ['CHOWN', 'KILL'],
  nanoCpus: 1e9,
  cpuShares: 512,
  memoryBytes: 2 ** 30,
  pids: 100,
  fileSizeBytes: 2 ** 31,
  network: 'none',
  dns: 'engine',
  toolsVolume: { name: 'tools', target: '/opt/evaluator', access: 'ro' },
};

/** An inspect document in the engine's shape, for SPEC. */
function created() {
  return {
    Name: '/trial',
    Image: IMAGE,
    Path: '/opt/evaluator/busybox',
    Args: ['sh'],
    Mounts: [{ Type: 'volume', Name: 'tools', Destination: '/opt/evaluator', RW: false, Propagation: '' }],
    NetworkSettings: { Networks: { none: {} } },
    Config: {
      Cmd: ['/opt/evaluator/busybox', 'sh'],
      Entrypoint: [],
      Env: ['HOME=/root', 'TOKEN=secret-value', 'PATH=/bin'],
      Healthcheck: { Test: ['NONE'] },
      Labels: { owner: 'us', 'of.the.image': 'x' },
      OpenStdin: false,
      Tty: false,
      User: '0',
      Volumes: null,
      WorkingDir: '/',
    },
    HostConfig: {
      CapAdd: ['CAP_KILL', 'CAP_CHOWN'],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      PidsLimit: 100,
      Memory: 2 ** 30,
      MemorySwap: 2 ** 30,
      NanoCpus: 1e9,
      CpuShares: 512,
      Ulimits: [
        { Name: 'fsize', Soft: 2 ** 31, Hard: 2 ** 31 },
        { Name: 'core', Soft: 0, Hard: 0 },
        { Name: 'nofile', Soft: 16384, Hard: 16384 },
      ],
      IpcMode: 'private',
      LogConfig: { Type: 'none', Config: {} },
      NetworkMode: 'none',
      RestartPolicy: { Name: 'no', MaximumRetryCount: 0 },
      Mounts: [{ Type: 'volume', Source: 'tools', VolumeOptions: { NoCopy: true } }],
      Privileged: false,
      Binds: null,
      Devices: [],
      PidMode: '',
      Init: false,
    },
  };
}

/** `created()` with one field, named by its dotted path, set to something else. */
function changed(field: string, value: unknown): Record<string, unknown> {
  const document: Record<string, unknown> = created();
  const keys = field.split('.');
  const last = keys.pop() ?? '';
  let at = document;
  for (const key of keys) at = at[key] as Record<string, unknown>;
  at[last] = value;
  return document;
}

describe('verifyCreated', () => {
  it('accepts what was asked for, in the engine’s own spellings', () => {
    expect(() => verifyCreated(SPEC, created())).not.toThrow();
  });

  it.each<[string, unknown]>([
    ['Name', '/other'],
    ['Image', `sha256:${'2'.repeat(64)}`],
    ['Path', '/bin/sh'],
    ['Args', []],
    ['Mounts', []],
    ['Mounts', [{ Type: 'volume', Name: 'tools', Destination: '/opt/evaluator', RW: true }]],
    ['Mounts', [...created().Mounts, { Type: 'bind', Source: '/', Destination: '/host', RW: true }]],
    ['NetworkSettings.Networks', { none: {}, bridge: {} }],
    ['Config.Entrypoint', ['/entry']],
    ['Config.Cmd', ['/opt/evaluator/busybox']],
    ['Config.Env', ['HOME=/root']],
    ['Config.Env', ['HOME=/root', 'HOME=/evil', 'TOKEN=secret-value']],
    ['Config.Labels', { owner: 'another' }],
    ['Config.User', '1000'],
    ['Config.WorkingDir', '/app'],
    ['Config.Healthcheck.Test', ['CMD', 'x']],
    ['Config.Volumes', { '/data': {} }],
    ['Config.Tty', true],
    ['Config.OpenStdin', true],
    ['HostConfig.CapAdd', ['CHOWN', 'KILL', 'SYS_ADMIN']],
    ['HostConfig.CapDrop', []],
    ['HostConfig.SecurityOpt', ['no-new-privileges', 'seccomp=unconfined']],
    ['HostConfig.SecurityOpt', []],
    ['HostConfig.SecurityOpt', ['no-new-privileges:false']],
    ['HostConfig.PidsLimit', null],
    ['HostConfig.Memory', 0],
    ['HostConfig.MemorySwap', -1],
    ['HostConfig.NanoCpus', 0],
    ['HostConfig.CpuShares', 0],
    ['HostConfig.Ulimits', created().HostConfig.Ulimits.slice(1)],
    ['HostConfig.IpcMode', 'host'],
    ['HostConfig.LogConfig.Type', 'json-file'],
    ['HostConfig.NetworkMode', 'bridge'],
    ['HostConfig.Dns', ['192.0.2.1']],
    ['HostConfig.RestartPolicy.Name', 'always'],
    ['HostConfig.Mounts', [{ Type: 'volume', Source: 'tools' }]],
    ['HostConfig.Privileged', true],
    ['HostConfig.Binds', ['/:/host']],
    ['HostConfig.Devices', [{ PathOnHost: '/dev/tdx_guest' }]],
    ['HostConfig.PidMode', 'host'],
    ['HostConfig.Init', true],
    ['HostConfig.CgroupParent', '/elsewhere'],
  ])('names %s when it is %j', (field, value) => {
    expect(() => verifyCreated(SPEC, changed(field, value))).toThrow(
      expect.objectContaining({ code: 'container_not_as_asked', message: expect.stringContaining(field) }),
    );
  });

  it('never says a value of the environment', () => {
    expect(() => verifyCreated(SPEC, changed('Config.Env', ['TOKEN=secret-value']))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret-value') }),
    );
  });
});
