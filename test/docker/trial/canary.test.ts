import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { hookedEngine } from '../../support/hooked-engine.ts';
import { agentOutputOf, judged } from '../../support/judged.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';
import { answerOf, PLACES } from './places.ts';

const run = promisify(execFile);
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

const GATEWAY = '172.17.0.1';

/** Stands for a service of the VM: whoever gets a connection has reached it. */
async function standIn(port: number): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('stand-in\n'));
  server.listen(port, GATEWAY);
  await once(server, 'listening');
  return server;
}

/** What a listener answers, once it listens. */
async function say(host: string, port: number, word: string): Promise<string> {
  for (;;) {
    const socket = connect(port, host).on('error', () => undefined);
    try {
      await once(socket, 'connect');
      socket.write(word);
      return String((await once(socket, 'data'))[0]);
    } catch {
      await sleep(100);
    } finally {
      socket.destroy();
    }
  }
}

type Address = readonly [host: string, port: number];

/** Tries every socket that there could be, and these addresses. */
const canary = (addresses: readonly Address[]) => `
import json, socket
def unix(path):
    try:
        with socket.socket(socket.AF_UNIX) as s: s.connect(path)
    except OSError: return False
    return True
def tcp(host, port):
    try: socket.create_connection((host, port), 3).close()
    except OSError: return False
    return True
paths = ['/var/run/docker.sock', '/run/docker.sock', '/var/run/dstack.sock', '/var/run/tappd.sock', '/run/containerd/containerd.sock',
  '\\0/containerd-shim', '/opt/evaluator/broker.sock', '\\0/run/evaluator/broker.sock', '/proc/1/root/var/run/docker.sock']
print(json.dumps({'sockets': [path for path in paths if unix(path)],
  'hosts': [f'{host}:{port}' for host, port in ${JSON.stringify(addresses)} if tcp(host, port)]}))
`;

describe('the canary', () => {
  const servers: Server[] = [];
  let service: Address;

  beforeAll(async () => {
    const server = await standIn(0);
    service = [GATEWAY, (server.address() as AddressInfo).port];
    servers.push(server);
    // The guest agent's port; where something listens already, that stands for it as well.
    servers.push(
      ...(await standIn(8090).then(
        (one) => [one],
        () => [],
      )),
    );
    const label = { 'io.cvm-evaluator.session': trial.session.id };
    await trial.context.engine.createNetwork(`cvm-eval-${trial.session.id}`, label);
  });
  afterAll(() => {
    for (const server of servers) server.close();
  });

  const fly = (network: 'none' | 'open', addresses: readonly Address[]) =>
    Promise.all(
      PLACES.map(([place, as]) =>
        answerOf(trial, `${network} ${place}`, { ...as, network }, canary(addresses)),
      ),
    );

  /** Another trial, which listens until it is told to stop, and where it does. */
  async function listener(): Promise<{ address: Address; reps: Promise<RepRecord[]> }> {
    const script = `exec python3 - <<'EOF'
import socket
with socket.create_server(('0.0.0.0', 8000)) as server:
    told = b''
    while told != b'stop':
        connection, _ = server.accept()
        told = connection.recv(4); connection.sendall(b'heard'); connection.close()
open('/app/answer', 'w').write('right')
EOF`;
    const started = Promise.withResolvers<string>();
    const engine = hookedEngine(trial.context.engine, {
      after: async (call, [id]) => {
        if (call === 'start') started.resolve(String(id));
      },
    });
    const reps = trial.run({ script, network: 'open', engine, taskId: 'listens' });
    const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
    const { stdout } = await run('docker', ['inspect', '--format', format, await started.promise]);
    return { address: [stdout.trim(), 8000], reps };
  }

  it('reaches no socket but its own, and with network none no address', async () => {
    // Three reps at once: the broker of one is as near to another as it ever is.
    const seen = await fly('none', [service, [GATEWAY, 8090], ['example.com', 80]]);
    expect(seen).toEqual(PLACES.map(() => ({ sockets: [], hosts: [] })));
  });

  it('with a local network that is open reaches what the VM has there, and still no other trial', async () => {
    const { address, reps } = await listener();
    expect(await say(...address, 'here')).toBe('heard');
    const seen = await fly('open', [service, address]);
    expect(seen).toEqual(PLACES.map(() => ({ sockets: [], hosts: [service.join(':')] })));
    expect(await say(...address, 'stop')).toBe('heard');
    expect((await reps).map(judged)).toEqual(['reward 1']);
  });

  it('through its own broker acts on the task of its own rep alone', async () => {
    const brokered = (mark: string) => `import asyncio, json
class Agent:
    async def run(self, instruction, environment, context):
        await environment.exec("echo right > /app/answer; echo ${mark} >> /app/marks")
        for _ in range(10): await environment.exec("sleep 0.1")
        print(json.dumps((await environment.exec("cat /app/marks")).stdout.split()))
`;
    const marks = ['one', 'other'];
    const reps = marks.map((mark) => trial.run({ script: '', brokered: brokered(mark), taskId: mark }));
    expect((await Promise.all(reps)).flat().map(judged)).toEqual(['reward 1', 'reward 1']);
    for (const mark of marks) expect(JSON.parse(await agentOutputOf(trial, mark))).toEqual([mark]);
  });
});
