import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyProvider, Measurement, VmShape } from '../../guest/wire/measurement.ts';
import { type Running, startServer } from './process.ts';

export const ROOT = join(import.meta.dirname, '../..');

/** A simulated TDX machine that runs, and what its quotes are believed by. */
export interface SimulatedMachine {
  running: Running;
  socket: string;
  rootPem: string;
  kmsRootPem: string;
  collateral: unknown;
  measurement: Measurement;
  keyProvider: KeyProvider;
  vmShape: VmShape;
}

/** Boots a simulated machine with this compose; its files lie below `work`. @throws process_failed. */
export async function startSimulator(options: {
  work: string;
  appCompose: Buffer;
  onLog: (line: string) => void;
}): Promise<SimulatedMachine> {
  const { work } = options;
  const compose = join(work, 'app-compose.json');
  writeFileSync(compose, options.appCompose);
  const [socket, trust] = [join(work, 'dstack.sock'), join(work, 'trust')];
  const seed = randomBytes(32).toString('hex');
  const { running } = await startServer({
    name: 'simulator',
    script: join(ROOT, 'scripts/cli/main.ts'),
    args: ['simulate', '--socket', socket, '--app-compose', compose, '--seed', seed, '--out', trust],
    env: {},
    input: '',
    onStderr: options.onLog,
  });
  const read = (name: string) => readFileSync(join(trust, name), 'utf8');
  const { measurement, key_provider, vm_shape } = JSON.parse(read('measurement.json')) as {
    measurement: Measurement;
    key_provider: KeyProvider;
    vm_shape: VmShape;
  };
  return {
    running,
    socket,
    rootPem: read('root.pem'),
    kmsRootPem: read('kms-root.pem'),
    collateral: JSON.parse(read('collateral.json')),
    measurement,
    keyProvider: key_provider,
    vmShape: vm_shape,
  };
}
