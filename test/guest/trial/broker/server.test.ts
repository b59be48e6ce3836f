import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Engine, ExecPipe, PathStat } from '../../../../guest/engine/port.ts';
import { packTar } from '../../../../guest/engine/tar.ts';
import { BrokerServer } from '../../../../guest/trial/broker/server.ts';

const stat = (isDirectory: boolean): PathStat => ({
  name: '',
  sizeBytes: 1,
  mode: 0o755,
  isRegularFile: !isDirectory,
  isDirectory,
  linkTarget: '',
});
const never = new Promise<never>(() => {});
const NOTHING = { head: Buffer.alloc(0), tail: Buffer.alloc(0), totalBytes: 0 };

const PIPE_IT = 'rm /etc/passwd; mkfifo /etc/passwd; sleep 1000';

/** Every command on it runs until it is killed, unless it is said to end. */
function engineOf(commands: 'end' | 'run'): Partial<Engine> {
  let running = commands === 'run';
  let accounts = stat(false);
  const pipe = { write: async () => {}, pause: () => {}, resume: () => {}, detach: () => {} };
  return {
    statPath: async (_, path) => {
      if (path === '/etc/passwd') return accounts;
      return path === '/app/x' ? null : stat(path === '/etc' || path === '/app');
    },
    createExec: async (_, { command }) => command.at(-1) ?? '',
    pipeExec: async (id, onOutput) => {
      if (id === PIPE_IT) accounts = { ...stat(false), isRegularFile: false };
      onOutput('stderr', Buffer.from('7\n'));
      return { ...pipe, id, closed: never };
    },
    startExec: async (id) => {
      running = false;
      return { id, output: Promise.resolve({ stdout: NOTHING, stderr: NOTHING }), detach: () => {} };
    },
    execState: async () => ({ running, exitCode: running ? null : 0, pid: 7 }),
    getArchive: async () => Readable.from([packTar([{ path: 'x', bytes: Buffer.alloc(1), mode: 0o644 }])]),
    putArchive: async (_id, _path, tar) => {
      for await (const _chunk of tar);
    },
  };
}

/** A broker whose agent has sent `calls`; `onCall` is told of every call of the engine before it is done. */
function brokerOf(
  commands: 'end' | 'run',
  calls: object[],
  onCall: (server: BrokerServer, name: keyof Engine) => void,
) {
  const answers: string[] = [];
  let now = 0;
  const engine = new Proxy(engineOf(commands) as Engine, {
    get: (target, name: keyof Engine) => {
      const call = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        onCall(server, name);
        return call(...args);
      };
    },
  });
  const server = new BrokerServer({
    engine,
    clock: {
      monotonicMs: () => now,
      sleep: async (ms) => {
        await turn();
        now += ms;
      },
    },
    target: { containerId: 'task', workdir: '/app' },
    sandboxId: 'sandbox',
    judgeFailure: async (error) => Promise.reject(error),
    onFault: (error) => {
      throw error;
    },
  });
  const pipe: Partial<ExecPipe> = {
    write: async (bytes) => void answers.push(bytes.toString()),
    pause: () => {},
    resume: () => {},
    detach: () => {},
  };
  server.attach(pipe as ExecPipe);
  server.receive(Buffer.from(calls.map((call, id) => `1 ${JSON.stringify({ id, ...call })}\n`).join('')));
  return answers;
}

/** Until nothing goes on any more. */
async function settled(): Promise<void> {
  for (let n = 0; n < 100; n++) await turn();
}

describe('many lines at once', () => {
  it('are read one a turn of the event loop, so that no timer is late', async () => {
    const answers = brokerOf('end', Array(20).fill({ call: 'cancel', of: 0 }), () => {});
    for (let turns = 0; turns < 20; turns++) {
      expect(answers.length).toBeLessThanOrEqual(turns);
      await turn();
    }
    await settled();
    expect(answers).toHaveLength(20);
  });
});

describe('a command that is over its time', () => {
  it.each([
    ['sleep 1000', 1],
    // The engine would wait in the pipe for ever.
    [PIPE_IT, 0],
  ])('%s: %i others are started to kill it', async (command, kills) => {
    let started = 0;
    const answers = brokerOf('run', [{ call: 'exec', command, timeout_sec: 1 }], (_, name) => {
      if (name === 'startExec') started++;
    });
    await settled();
    expect(answers.join()).toContain('"timeout"');
    expect(started).toBe(kills);
  });
});

describe('a broker that has been stopped', () => {
  const command = { call: 'exec', command: 'make' };
  const transfer = { source: '/root/x', target: '/app/x', what: 'file' };
  it.each([
    ['commands', 'end', [1, 2, 3, 4, 5, 6].map(() => command)],
    ['a command that is killed', 'run', [{ ...command, timeout_sec: 1 }]],
    ['an upload', 'end', [{ ...transfer, call: 'upload' }]],
  ] as const)('asks the engine for nothing more, wherever it was: %s', async (_, commands, calls) => {
    let all = 0;
    const answered = brokerOf(commands, [...calls], () => all++);
    await settled();
    expect(answered).toHaveLength(calls.length);
    for (let last = 1; last <= all; last++) {
      let made = 0;
      const answers = brokerOf(commands, [...calls], (server) => {
        if (++made === last) server.stop();
      });
      await settled();
      expect(made, `of ${all} calls, after call ${last}`).toBe(last);
      expect(answers.length).toBeLessThan(calls.length);
    }
  });
});
