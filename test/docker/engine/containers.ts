import type { ContainerSpec, Engine } from '../../../guest/engine/port.ts';
import { TEST_LABEL, testName } from '../fixtures.ts';

export interface TestContainers {
  /** A spec of a small container that waits, with `changes`. */
  spec(changes: Partial<ContainerSpec>): ContainerSpec;
  createFrom(spec: ContainerSpec): Promise<string>;
  create(changes: Partial<ContainerSpec>): Promise<string>;
  start(changes: Partial<ContainerSpec>): Promise<string>;
  /** Runs a shell script in it to its end. */
  run(id: string, script: string): Promise<{ stdout: string; stderr: string; exitCode: number | null }>;
  removeAll(): Promise<void>;
}

/** Makes containers of `image` and remembers them, so that all can be removed. */
export function createTestContainers(engine: Engine, image: string): TestContainers {
  const made: string[] = [];

  const containers: TestContainers = {
    spec: (changes) => ({
      name: testName(),
      image,
      command: ['/bin/busybox', 'sleep', '600'],
      env: [],
      workingDir: '',
      capAdd: [],
      nanoCpus: 1e9,
      cpuShares: 512,
      memoryBytes: 64 * 2 ** 20,
      pids: 64,
      fileSizeBytes: 2 ** 42,
      network: 'none',
      dns: 'engine',
      toolsVolume: null,
      ...changes,
      labels: { [TEST_LABEL]: '', ...changes.labels },
    }),

    async createFrom(spec) {
      const id = await engine.create(spec);
      made.push(id);
      return id;
    },

    create: (changes) => containers.createFrom(containers.spec(changes)),

    async start(changes) {
      const id = await containers.create(changes);
      await engine.start(id);
      return id;
    },

    async run(id, script) {
      const execId = await engine.createExec(id, {
        command: ['/bin/busybox', 'sh', '-c', script],
        env: [],
        workingDir: '',
        user: '0',
      });
      const { output } = await engine.startExec(execId);
      const { stdout, stderr } = await output;
      const { exitCode } = await engine.execState(execId);
      return { stdout: stdout.head.toString(), stderr: stderr.head.toString(), exitCode };
    },

    async removeAll() {
      await Promise.all(made.map((id) => engine.remove(id)));
    },
  };
  return containers;
}
