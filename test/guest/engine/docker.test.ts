import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DEADLINES_MS } from '../../../guest/engine/deadline.ts';
import { connectDocker } from '../../../guest/engine/docker.ts';
import type { ContainerSpec, Engine } from '../../../guest/engine/port.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SPEC: ContainerSpec = {
  name: 'n',
  image: 'sha256:0',
  command: ['true'],
  env: ['TOKEN=s3cret'],
  workingDir: '',
  labels: {},
  capAdd: [],
  nanoCpus: 1,
  cpuShares: 2,
  memoryBytes: 1,
  pids: 1,
  fileSizeBytes: 1,
  network: 'none',
  dns: 'engine',
  toolsVolume: null,
};

/** Every call of the port. The compiler asks for a line when one is added. */
const CALLS: { readonly [K in keyof Engine]: (engine: Engine) => Promise<unknown> } = {
  info: (engine) => engine.info(),
  image: (engine) => engine.image('busybox:1'),
  pull: (engine) => engine.pull('busybox:1'),
  create: (engine) => engine.create(SPEC),
  inspectRaw: (engine) => engine.inspectRaw('c'),
  inspect: (engine) => engine.inspect('c'),
  start: (engine) => engine.start('c'),
  kill: (engine) => engine.kill('c'),
  remove: (engine) => engine.remove('c'),
  waitExit: (engine) => engine.waitExit('c', 5000),
  createExec: (engine) => engine.createExec('c', { command: ['x'], env: [], workingDir: '', user: '0' }),
  startExec: (engine) => engine.startExec('e'),
  pipeExec: (engine) => engine.pipeExec('e', () => undefined),
  execState: (engine) => engine.execState('e'),
  putArchive: (engine) => engine.putArchive('c', '/', Buffer.alloc(1024)),
  getArchive: (engine) => engine.getArchive('c', '/x'),
  statPath: (engine) => engine.statPath('c', '/x'),
  writableLayerBytes: (engine) => engine.writableLayerBytes('c', 5000),
  createVolume: (engine) => engine.createVolume('v', {}),
  removeVolume: (engine) => engine.removeVolume('v'),
  createInternalNetwork: (engine) => engine.createInternalNetwork('n', '198.18.0.0/29', {}),
  connect: (engine) => engine.connect('n', 'id', '198.18.0.2'),
  createNetwork: (engine) => engine.createNetwork('n', {}),
  disconnect: (engine) => engine.disconnect('n', 'c'),
  removeNetwork: (engine) => engine.removeNetwork('n'),
  removeImage: (engine) => engine.removeImage('i'),
  listOwned: (engine) => engine.listOwned('l'),
};
const calls = Object.entries(CALLS);

let folder: string;
let server: Server | undefined;
let sockets: Socket[];

beforeEach(() => {
  folder = scratchFolder();
  sockets = [];
});

afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets) socket.destroy();
  server?.close();
  server = undefined;
});

/** An engine that answers every connection's first bytes in one given way. */
async function engineThat(answers: (socket: Socket) => void): Promise<Engine> {
  const path = join(folder, 'engine.sock');
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => answers(socket));
  });
  await new Promise<void>((resolve) => server?.listen(path, resolve));
  return connectDocker(path);
}

function httpAnswer(status: number, body: string): string {
  return `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

describe('connectDocker', () => {
  it.each(calls)('%s ends with engine_timeout when the engine hangs', async (_, call) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const engine = await engineThat(() => {});
    const outcome = expect(call(engine)).rejects.toMatchObject({ code: 'engine_timeout', fault: 'infra' });
    await vi.advanceTimersByTimeAsync(Math.max(...Object.values(DEADLINES_MS)));
    await outcome;
  });

  it.each(calls)('%s ends with engine_unreachable when there is no engine', async (_, call) => {
    const outcome = expect(call(connectDocker(join(folder, 'absent.sock'))));
    await outcome.rejects.toMatchObject({ code: 'engine_unreachable', fault: 'infra' });
  });

  it('ends with engine_timeout when the answer’s body never comes', async () => {
    const engine = await engineThat((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'),
    );
    await expect(engine.waitExit('c', 50)).rejects.toMatchObject({ code: 'engine_timeout' });
  });

  it.each([
    ['before it answers', ''],
    ['in the middle of an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'],
  ])('ends with engine_unreachable at once when the engine dies %s', async (_, text) => {
    const engine = await engineThat((socket) => socket.end(text));
    await expect(engine.waitExit('c', 3_600_000)).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it.each([
    ['no JSON', 'hello'],
    ['JSON of another shape', '{"State":"running"}'],
    ['nothing', ''],
  ])('ends with engine_error when the answer is %s', async (_, body) => {
    const engine = await engineThat((socket) => socket.write(httpAnswer(200, body)));
    await expect(engine.inspect('c')).rejects.toMatchObject({ code: 'engine_error' });
  });

  it('takes a container whose exit code is missing for no exit', async () => {
    const engine = await engineThat((socket) => socket.write(httpAnswer(200, '{"StatusCode":null}')));
    await expect(engine.waitExit('c', 5000)).rejects.toMatchObject({ code: 'engine_error' });
  });

  it('repeats no value of the environment when the engine does', async () => {
    const said = JSON.stringify({ message: 'bad TOKEN=s3cret' });
    const engine = await engineThat((socket) => socket.write(httpAnswer(400, said)));
    const error: unknown = await engine.create(SPEC).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'engine_error' });
    expect(String(error)).not.toContain('s3cret');
    expect(JSON.stringify(error)).not.toContain('s3cret');
  });

  it('reads output that makes no sense to its end before it says so', async () => {
    let sent = 0;
    const engine = await engineThat((socket) => {
      socket.write('HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n');
      socket.write('\r\nnot a frame at all');
      const more = () => {
        sent += 1;
        if (sent === 100) socket.end();
        else socket.write(Buffer.alloc(100_000), more);
      };
      more();
    });
    const { output } = await engine.startExec('e');
    await expect(output).rejects.toMatchObject({ code: 'engine_error' });
    expect(sent).toBe(100);
  });

  it('ends the output, as any end does, when the engine dies', async () => {
    const frame = '\u0001\0\0\0\0\0\0\u0005hello';
    const engine = await engineThat((socket) => socket.end(`HTTP/1.1 101 UPGRADED\r\n\r\n${frame}`));
    const { stdout } = await (await engine.startExec('e')).output;
    expect(stdout).toMatchObject({ head: Buffer.from('hello'), totalBytes: 5 });
  });

  it.each([
    [404, 'engine_not_found'],
    [409, 'engine_conflict'],
    [500, 'engine_error'],
    [200, 'engine_error'],
  ])('starts no exec when the engine answers %i', async (status, code) => {
    const engine = await engineThat((socket) => socket.write(httpAnswer(status, '{"message":"paused"}')));
    await expect(engine.startExec('e')).rejects.toMatchObject({
      code,
      message: expect.stringContaining('paused'),
    });
  });

  it.each([
    [404, 'No such container: c'],
    [409, 'removal of container c is already in progress'],
  ])('takes %i for removed: %s', async (status, message) => {
    const engine = await engineThat((socket) =>
      socket.write(httpAnswer(status, JSON.stringify({ message }))),
    );
    await engine.remove('c');
  });

  it('does not take any other conflict for removed', async () => {
    const engine = await engineThat((socket) => socket.write(httpAnswer(409, '{"message":"stop it first"}')));
    await expect(engine.remove('c')).rejects.toMatchObject({ code: 'engine_conflict' });
  });

  it('does not read a head without end', async () => {
    const engine = await engineThat((socket) => socket.write(Buffer.alloc(100_000, 'x')));
    await expect(engine.startExec('e')).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it.each(['', '.', '..'])('asks nothing about the object %j', async (id) => {
    const engine = await engineThat(() => expect.unreachable());
    await expect(engine.remove(id)).rejects.toMatchObject({ code: 'engine_not_found' });
  });

  it('pulls nothing without a tag or digest', async () => {
    const engine = await engineThat(() => expect.unreachable());
    await expect(engine.pull('registry:5000/name')).rejects.toMatchObject({ code: 'engine_error' });
  });

  it('reports a pull that failed after its answer began', async () => {
    const line = '{"errorDetail":{"message":"no such tag"},"error":"no such tag"}\r\n';
    const engine = await engineThat((socket) => socket.write(httpAnswer(200, line)));
    await expect(engine.pull('name:tag')).rejects.toMatchObject({
      code: 'engine_error',
      message: expect.stringContaining('no such tag'),
    });
  });

  it('reports a pull whose connection broke', async () => {
    const engine = await engineThat((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"status":"x"}\n');
      socket.end();
    });
    await expect(engine.pull('name:tag')).rejects.toMatchObject({ code: 'engine_unreachable' });
  });
});
