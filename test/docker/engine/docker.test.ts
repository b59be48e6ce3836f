import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locateCgroup } from '../../../guest/engine/cgroup.ts';
import { freeDiskBytes } from '../../../guest/engine/disk.ts';
import { connectDocker } from '../../../guest/engine/docker.ts';
import type { ContainerSpec } from '../../../guest/engine/port.ts';
import { packTar } from '../../../guest/engine/tar.ts';
import { verifyCreated } from '../../../guest/engine/verify-created.ts';
import { ENGINE_SOCKET, ensureTestImage, TEST_LABEL, testName } from '../fixtures.ts';
import { createTestContainers, type TestContainers } from './containers.ts';

const engine = connectDocker(ENGINE_SOCKET);
let containers: TestContainers;

beforeAll(async () => {
  containers = createTestContainers(engine, await ensureTestImage());
});

afterAll(() => containers.removeAll());

describe('a container', () => {
  it('lives from create to remove', async () => {
    const id = await containers.create({ command: ['/bin/sh', '-c', 'exit 3'] });
    expect(await engine.inspect(id)).toMatchObject({ id, status: 'created', running: false });
    await engine.start(id);
    expect(await engine.waitExit(id, 20_000)).toBe(3);
    expect(await engine.inspect(id)).toMatchObject({ status: 'exited', running: false, exitCode: 3 });
    await engine.remove(id);
    await expect(engine.inspect(id)).rejects.toMatchObject({ code: 'engine_not_found' });
    await engine.remove(id);
  });

  it('is what was asked for, and is recognised when it is not', async () => {
    const volume = testName();
    const network = testName();
    await engine.createVolume(volume, { [TEST_LABEL]: '' });
    const networkId = await engine.createNetwork(network, { [TEST_LABEL]: '' });
    try {
      const spec = containers.spec({
        env: ['A=1'],
        capAdd: ['CHOWN', 'SETUID'],
        network,
        toolsVolume: { name: volume, target: '/opt/evaluator', access: 'ro' },
      });
      const id = await containers.createFrom(spec);
      const raw = await engine.inspectRaw(id);
      expect(() => verifyCreated(spec, raw)).not.toThrow();
      const others: Partial<ContainerSpec>[] = [
        { name: 'other' },
        { image: `sha256:${'0'.repeat(64)}` },
        { command: ['/bin/sh'] },
        { env: ['A=2'] },
        { workingDir: '/tmp' },
        { labels: { [TEST_LABEL]: 'other' } },
        { capAdd: ['CHOWN'] },
        { nanoCpus: 2e9 },
        { cpuShares: 2 },
        { memoryBytes: 2 ** 20 },
        { pids: 1 },
        { fileSizeBytes: 1 },
        { network: 'none' },
        { toolsVolume: null },
        { toolsVolume: { name: volume, target: '/opt/evaluator', access: 'rw' } },
      ];
      for (const other of others) {
        expect(() => verifyCreated({ ...spec, ...other }, raw), JSON.stringify(other)).toThrow(
          expect.objectContaining({ code: 'container_not_as_asked' }),
        );
      }
      await engine.start(id);
      expect(() => verifyCreated(spec, raw)).not.toThrow();
      await engine.remove(id);
    } finally {
      await engine.removeNetwork(networkId);
      await engine.removeVolume(volume);
    }
  });

  it('runs as root with the asked capabilities, cannot gain more, and cannot write its tools', async () => {
    const volume = testName();
    await engine.createVolume(volume, { [TEST_LABEL]: '' });
    try {
      const id = await containers.start({
        capAdd: ['CHOWN'],
        toolsVolume: { name: volume, target: '/opt/evaluator', access: 'ro' },
      });
      const { stdout } = await containers.run(
        id,
        'id -u; grep -E "CapEff|NoNewPrivs" /proc/self/status; ulimit -n; ulimit -c; touch /opt/evaluator/x || echo kept',
      );
      expect(stdout.split('\n')).toEqual([
        '0',
        expect.stringMatching(/CapEff:\s+0000000000000001/),
        expect.stringMatching(/NoNewPrivs:\s+1/),
        '16384',
        '0',
        'kept',
        '',
      ]);
      await engine.remove(id);
    } finally {
      await engine.removeVolume(volume);
    }
  });

  it('starts again after its network was taken away, and is still without', async () => {
    const network = testName();
    const networkId = await engine.createNetwork(network, { [TEST_LABEL]: '' });
    const id = await containers.start({ network });
    try {
      expect((await containers.run(id, 'ls /sys/class/net')).stdout).toContain('eth0');
      await engine.kill(id);
      await engine.disconnect(network, id);
      await engine.start(id);
      expect((await containers.run(id, 'ls /sys/class/net')).stdout.trim()).toBe('lo');
    } finally {
      await engine.remove(id);
      await engine.removeNetwork(networkId);
    }
  });

  it('answers a conflict as one: a name taken, a kill of the dead', async () => {
    const spec = containers.spec({});
    const id = await containers.createFrom(spec);
    await expect(engine.create(spec)).rejects.toMatchObject({ code: 'engine_conflict' });
    await expect(engine.kill(id)).rejects.toMatchObject({ code: 'engine_conflict' });
  });

  it('shows its counters, and those of processes that have ended', async () => {
    const id = await containers.start({});
    const { pid } = await engine.inspect(id);
    const reader = locateCgroup(await engine.info(), id, pid);
    const before = reader.read();
    await containers.run(id, 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done');
    const after = reader.read();
    expect(after.cpuUsec - before.cpuUsec).toBeGreaterThan(10_000);
    expect(after.memoryPeakBytes).toBeGreaterThan(0);
    expect(after.oomKills).toBe(0);
    await engine.kill(id);
    expect(() => reader.read()).toThrow(expect.objectContaining({ code: 'cgroup_unreadable' }));
  });

  it('counts an OOM kill', async () => {
    const id = await containers.start({ memoryBytes: 16 * 2 ** 20 });
    const { pid } = await engine.inspect(id);
    const reader = locateCgroup(await engine.info(), id, pid);
    await containers.run(id, 'tail -c 100000000 /dev/zero');
    expect(reader.read().oomKills).toBeGreaterThanOrEqual(1);
  });

  it('tells the size of what it wrote', async () => {
    const id = await containers.start({});
    await containers.run(id, 'dd if=/dev/zero of=/big bs=1M count=5');
    expect(await engine.writableLayerBytes(id, 10_000)).toBeGreaterThanOrEqual(5 * 2 ** 20);
    expect(await freeDiskBytes('/')).toBeGreaterThan(0);
  });
});

describe('an upload', () => {
  it('lands with its modes, leaves other directories alone, and replaces none by a file', async () => {
    const id = await containers.create({});
    await engine.putArchive(
      id,
      '/',
      packTar([
        { path: './', directory: true },
        { path: 'agent', directory: true },
        { path: 'agent/run', bytes: Buffer.from('x'), mode: 0o755 },
      ]),
    );
    expect(await engine.statPath(id, '/agent/run')).toMatchObject({ mode: 0o755, sizeBytes: 1 });
    const overDirectory = packTar([{ path: './agent', bytes: Buffer.from('x'), mode: 0o644 }]);
    await expect(engine.putArchive(id, '/', overDirectory)).rejects.toMatchObject({ fault: 'infra' });
    expect(await engine.statPath(id, '/agent')).toMatchObject({ isDirectory: true });
  });
});

describe('an exec', () => {
  it('gives both outputs and the exit code', async () => {
    const id = await containers.start({});
    const result = await containers.run(id, 'echo out; echo err >&2; cat; exit 7');
    expect(result).toEqual({ stdout: 'out\n', stderr: 'err\n', exitCode: 7 });
  });

  it('that cannot start ends with 126 or 127 and does not hang', async () => {
    const id = await containers.start({});
    const execId = await engine.createExec(id, {
      command: ['/no/such/program'],
      env: [],
      workingDir: '',
      user: '0',
    });
    const { output } = await engine.startExec(execId);
    expect((await output).stdout.totalBytes).toBeGreaterThan(0);
    expect([126, 127]).toContain((await engine.execState(execId)).exitCode);
  });

  it('goes on when nobody reads it any more', async () => {
    const id = await containers.start({});
    const execId = await engine.createExec(id, {
      command: ['/bin/sh', '-c', 'sleep 0.2; dd if=/dev/zero bs=1M count=20; echo done > /done'],
      env: [],
      workingDir: '',
      user: '0',
    });
    const exec = await engine.startExec(execId);
    exec.detach();
    await exec.output;
    await expect
      .poll(() => engine.statPath(id, '/done'), { timeout: 20_000 })
      .toMatchObject({ sizeBytes: 5 });
  });

  it('is refused on a container that does not run', async () => {
    const id = await containers.create({});
    const spec = { command: ['/bin/sh'], env: [], workingDir: '', user: '0' };
    await expect(engine.createExec(id, spec)).rejects.toMatchObject({ code: 'engine_conflict' });
  });
});

describe('listOwned', () => {
  it('finds containers, volumes and networks by the key of a label, and nothing else', async () => {
    const label = `${TEST_LABEL}.${testName()}`;
    const name = testName();
    const id = await containers.create({ labels: { [label]: 'a' } });
    await engine.createVolume(name, { [label]: 'b' });
    const networkId = await engine.createNetwork(name, { [label]: 'c' });
    try {
      expect(await engine.listOwned(label)).toEqual([
        { kind: 'container', id, labels: { [TEST_LABEL]: '', [label]: 'a' } },
        { kind: 'volume', id: name, labels: { [label]: 'b' } },
        { kind: 'network', id: networkId, labels: { [label]: 'c' } },
      ]);
    } finally {
      await engine.removeVolume(name);
      await engine.removeNetwork(networkId);
    }
  });
});

describe('an image', () => {
  it('is described, or null when it is not there', async () => {
    const id = await ensureTestImage();
    expect(await engine.image(id)).toMatchObject({ id, os: 'linux', workingDir: '/app', volumes: [] });
    expect(await engine.image('cvm-evaluator-test/absent:1')).toBeNull();
  });
});
