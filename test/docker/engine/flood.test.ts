import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import { ENGINE_SOCKET, ensureTestImage } from '../fixtures.ts';
import { createTestContainers, type TestContainers } from './containers.ts';

const MIB = 2 ** 20;
const engine = connectDocker(ENGINE_SOCKET);
let containers: TestContainers;

beforeAll(async () => {
  containers = createTestContainers(engine, await ensureTestImage());
});

afterAll(() => containers.removeAll());

async function flood(script: string) {
  const id = await containers.start({ nanoCpus: 2e9 });
  const execId = await engine.createExec(id, {
    command: ['/bin/busybox', 'sh', '-c', script],
    env: [],
    workingDir: '',
    user: '0',
  });
  const before = process.memoryUsage.rss();
  let peak = before;
  const sample = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 20);
  try {
    const { stdout } = await (await engine.startExec(execId)).output;
    return { stdout, grownBytes: peak - before };
  } finally {
    clearInterval(sample);
    await engine.remove(id);
  }
}

describe('the output of an exec', () => {
  it('of one line of a gibibyte is counted, and its ends kept, in constant memory', async () => {
    const { stdout, grownBytes } = await flood('printf start; dd if=/dev/zero bs=1M count=1024; printf end');
    expect(stdout.totalBytes).toBe(1024 * MIB + 8);
    expect(stdout.head.length).toBe(65_536);
    expect(stdout.head.toString('latin1', 0, 5)).toBe('start');
    expect(stdout.tail.length).toBe(65_536);
    expect(stdout.tail.toString('latin1', 65_533)).toBe('end');
    expect(grownBytes).toBeLessThan(48 * MIB);
  }, 300_000);

  it('in tiny pieces is counted in constant memory', async () => {
    const { stdout, grownBytes } = await flood('dd if=/dev/zero bs=1 count=300000');
    expect(stdout.totalBytes).toBe(300_000);
    expect(grownBytes).toBeLessThan(48 * MIB);
  }, 300_000);
});
