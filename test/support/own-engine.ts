import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { connectDocker } from '../../guest/engine/docker.ts';

const run = promisify(execFile);

/** An engine of a test's own, which it may kill, stop and start again. Its containers have no network. */
export interface OwnEngine {
  socket: string;
  docker(...args: string[]): Promise<string>;
  /** Brings an image of the machine's engine over. */
  load(image: string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Starts it again, over the same data, after a SIGKILL. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

function read(pid: number, what: 'cmdline' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${what}`, 'utf8');
  } catch {
    return '';
  }
}

/** The parent: behind the name, which may hold anything. */
const parentOf = (pid: number) => Number(/^.*\) \S (\d+)/s.exec(read(pid, 'stat'))?.[1] ?? 0);

/** The engine, its containerd and their shims have `folder` on their command line; containers are their children. */
function processesOf(folder: string): number[] {
  const all = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid)
    .map(Number);
  const own = new Set(all.filter((pid) => read(pid, 'cmdline').includes(folder)));
  return all.filter((pid) => own.has(pid) || own.has(parentOf(pid)));
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

async function unmountBelow(folder: string): Promise<void> {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(folder));
  for (const path of mounted.reverse()) await run('umount', ['--lazy', path]).catch(() => undefined);
}

/** Starts a second dockerd in a network namespace of its own; needs root and `unshare`. */
export async function startOwnEngine(): Promise<OwnEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'own-engine-'));
  const socket = join(folder, 'engine.sock');
  const engine = connectDocker(socket);
  let daemon: ChildProcess;

  async function start(): Promise<void> {
    rmSync(join(folder, 'pid'), { force: true });
    // Its containerd died with it; where nobody reaps it, the engine would take its entry for a live one.
    rmSync(join(folder, 'exec/containerd/containerd.pid'), { force: true });
    const log = openSync(join(folder, 'log'), 'a');
    const options = { '--data-root': 'data', '--exec-root': 'exec', '-p': 'pid' };
    daemon = spawn(
      'unshare',
      [
        '-n',
        'dockerd',
        ...Object.entries(options).flatMap(([name, place]) => [name, join(folder, place)]),
        '-H',
        `unix://${socket}`,
        '--bridge',
        'none',
        '--iptables=false',
        '--ip6tables=false',
      ],
      { stdio: ['ignore', log, log] },
    );
    while (!(existsSync(socket) && (await engine.info().catch(() => null)))) {
      if (daemon.exitCode !== null)
        throw new Error(`dockerd did not start:\n${readFileSync(join(folder, 'log'), 'utf8').slice(-2000)}`);
      await sleep(50);
    }
  }

  await start();
  return {
    socket,
    docker: async (...args) => (await run('docker', ['-H', `unix://${socket}`, ...args])).stdout,
    load: async (image) => {
      const tar = join(folder, 'image.tar');
      await run('docker', ['save', '--output', tar, image]);
      await run('docker', ['-H', `unix://${socket}`, 'load', '--input', tar]);
    },
    signal: (name) => daemon.kill(name),
    restart: start,
    close: async () => {
      // Shims start others while they end.
      for (let left = processesOf(folder); left.length > 0; left = processesOf(folder)) {
        left.forEach(kill);
        await sleep(50);
      }
      await unmountBelow(folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
