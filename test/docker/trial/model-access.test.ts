import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../guest/engine/port.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { openAccess, removeAccess } from '../../../guest/inference/access.ts';
import { openNetwork } from '../../../guest/stages/prepare-engine.ts';
import { LABEL, labelsOf } from '../../../guest/trial/labels.ts';
import { networkName } from '../../../guest/trial/sandbox.ts';
import {
  choice,
  completion,
  type OpenChatDouble,
  openChatDouble,
  replying,
} from '../../support/chat-double.ts';
import { hookedEngine } from '../../support/hooked-engine.ts';
import { agentOutputOf } from '../../support/judged.ts';
import { rejectionCode } from '../../support/throws.ts';
import { agentRuntime, startTrial, type TrialHarness } from '../../support/trial.ts';

/** The host's address on the engine's default bridge. */
const HOST = '172.17.0.1';
const API_KEY = 'sk-upstream-secret';
const RULES = {
  models: ['vendor/model-1', 'vendor/model-2'],
  caps: { requests: 3, sent_bytes: 1e6, received_bytes: 1e6, tokens: 1e6, reply_tokens: 100 },
};

let trial: TrialHarness;
let double: OpenChatDouble;
let stranger: Server;
let strangerPort = 0;

beforeAll(async () => {
  trial = await startTrial();
  double = await openChatDouble(replying(completion({ choices: [choice(null, 'right')] })), {
    address: HOST,
  });
  const { imageId } = await agentRuntime(trial.context.engine);
  const rules = { ...RULES, upstream: double.url, ca_pem: double.caPem };
  trial.context.inference = { rules, apiKey: API_KEY, imageId };
  await openNetwork(trial.context);
  stranger = createServer((socket) => socket.end('stand-in\n')).listen(0, '0.0.0.0');
  await once(stranger, 'listening');
  const address = stranger.address();
  strangerPort = typeof address === 'object' && address ? address.port : 0;
});
afterAll(async () => {
  stranger?.close();
  await double?.close();
  await trial?.close();
});

/** Asks the model for the answer and writes it down; `more` runs after. */
const asking = (more: string) => `cat > /tmp/ask.py <<'EOF'
import json, os, socket, urllib.request, urllib.error
base, key = os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY']
def ask(**changes):
    body = {'model': os.environ['INFERENCE_MODELS'].split()[0], 'messages': [{'role': 'user', 'content': 'the word?'}], **changes}
    request = urllib.request.Request(base + '/chat/completions', json.dumps(body).encode(),
        {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply: return json.load(reply)['choices'][0]['message']['content']
    except urllib.error.HTTPError as error: return json.load(error)['error']['code']
    except OSError as error: return 'no model'
def reaches(host, port):
    try:
        with socket.create_connection((host, port), 2): return True
    except OSError: return False
said = {'answer': ask()}
${more}
print(json.dumps(said))
EOF
python3 /tmp/ask.py`;
const WRITE = `open('/app/answer', 'w').write(said['answer'])`;

async function said(taskId: string): Promise<Record<string, unknown>> {
  return JSON.parse(await agentOutputOf(trial, taskId));
}
const used = (taskId: string) => trial.finished.find((done) => done.taskId === taskId)?.first.modelUse;

/** Bridges and proxies of this session that are still there; the run's own bridge is not meant. */
async function left(): Promise<string[]> {
  const owned = await trial.context.engine.listOwned(LABEL.session);
  return owned
    .filter(({ labels }) => labels[LABEL.session] === trial.session.id && labels[LABEL.role] === 'proxy')
    .map(({ kind, id }) => `${kind} ${id}`);
}

/** An engine on which this happens once the agent has been started. */
function whenStarted(act: (engine: Engine, proxy: string) => Promise<unknown>): Engine {
  const { engine } = trial.context;
  let proxy = '';
  return hookedEngine(engine, {
    after: async (call, args) => {
      if (call === 'connect') proxy = String(args[1]);
      if (call === 'startExec') await act(engine, proxy);
    },
  });
}

describe('an agent with network inference', () => {
  it('reaches its proxy, and by it the model, and nothing else', async () => {
    const { engine, session, clock, inference: offer } = trial.context;
    if (!offer) return expect.unreachable();
    const other = await openAccess(
      {
        engine,
        offer,
        labels: labelsOf(session, 'trial-test', 'proxy', 'other'),
        cpuShares: 512,
        outside: networkName(trial.context),
        monotonicMs: () => clock.monotonicMs(),
        sleep: (ms) => clock.sleep(ms),
      },
      `cvm-eval-${session.id}-other`,
    );
    const otherHost = new URL(other.env[0]?.split('=')[1] ?? '').hostname;
    const outside = (await engine.inspectRaw(other.proxy.containerId)) as {
      NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
    };
    const outsideHost = outside.NetworkSettings.Networks[networkName(trial.context)]?.IPAddress ?? '';
    try {
      const [rep] = await trial.run({
        taskId: 'reach',
        network: 'inference',
        script: asking(`${WRITE}
host = base.split('/')[2].split(':')[0]
bridge = host.rsplit('.', 1)[0] + '.' + str(int(host.rsplit('.', 1)[1]) - 1)
said['proxy'] = reaches(host, 8080)
from concurrent.futures import ThreadPoolExecutor
def resolves(name):
    try: return socket.gethostbyname(name)
    except OSError: return None
places = [(bridge, ${strangerPort}), ('${HOST}', ${strangerPort}), (host, 22), ('${otherHost}', 8080), ('${outsideHost}', 8080), ('192.0.2.1', 443)]
with ThreadPoolExecutor(16) as all_at_once:
    reached = all_at_once.map(lambda place: reaches(*place), places)
    names = all_at_once.map(resolves, ['example.com', 'host.docker.internal', 'gateway.docker.internal'])
said['reached'] = [place for place, is_open in zip(places, reached) if is_open]
said['names'] = [name for name in names if name]
said['other'] = ask(model='vendor/model-3')
said['streaming'] = ask(stream=True)
said['env'] = dict(os.environ)`),
      });
      expect(rep).toMatchObject({ outcome: 'completed', start_retries: 0 });
      expect(trial.finished.find(({ taskId }) => taskId === 'reach')?.record.value).toEqual({
        reward_f64be: '3ff0000000000000',
      });
      const found = await said('reach');
      expect(found).toMatchObject({
        answer: 'right',
        proxy: true,
        reached: [],
        names: [],
        other: 'model_refused',
        streaming: 'field_refused',
      });
      expect(JSON.stringify(found.env)).not.toContain(API_KEY);
      expect(found.env).toMatchObject({ INFERENCE_MODELS: 'vendor/model-1 vendor/model-2' });
      expect(double.received.at(-1)?.headers.authorization).toBe(`Bearer ${API_KEY}`);
      expect(used('reach')).toMatchObject({
        requests: 1,
        refused: 2,
        prompt_tokens: 1,
        completion_tokens: 1,
      });
    } finally {
      await removeAccess(engine, other);
    }
    expect(await left()).toEqual([]);
  });

  it('that is brokered has it in its sandbox, and the task none', async () => {
    const agent = `import asyncio, json, os, subprocess

class Agent:
    async def run(self, instruction, environment, context):
        asked = await asyncio.to_thread(subprocess.run, ["sh", "/agent/agent.sh"], capture_output=True, text=True)
        said = json.loads(asked.stdout)
        inside = await environment.exec("ls /sys/class/net; env")
        await environment.exec("echo %s > /app/answer" % said["answer"])
        print(json.dumps({"answer": said["answer"], "task": inside.stdout}))
`;
    const [rep] = await trial.run({
      taskId: 'brokered',
      network: 'inference',
      script: asking(''),
      brokered: agent,
    });
    expect(rep).toMatchObject({ outcome: 'completed' });
    const found = await said('brokered');
    expect(found.answer).toBe('right');
    expect(String(found.task).split('\n')[0]).toBe('lo');
    expect(String(found.task)).not.toMatch(/^eth|OPENAI|INFERENCE/m);
    expect(used('brokered')).toMatchObject({ requests: 1 });
    expect(await left()).toEqual([]);
  });

  it('never has the key: no variable, command or label of its proxy holds it, and its file is gone', async () => {
    const seen = { inspected: '', settings: '' };
    const engine = whenStarted(async (real, proxy) => {
      seen.inspected = JSON.stringify(await real.inspectRaw(proxy));
      seen.settings = String(await real.statPath(proxy, '/proxy/settings.json'));
    });
    await trial.run({ taskId: 'key', network: 'inference', script: 'true', engine });
    expect(seen.settings).toBe('null');
    expect(seen.inspected).toContain('/proxy/inference/proxy/main.ts');
    expect(seen.inspected).not.toContain(API_KEY);
  });

  it('has as much as the mechanism gives a rep', async () => {
    await trial.run({
      taskId: 'caps',
      network: 'inference',
      script: asking('said["more"] = [ask(), ask(), ask()]'),
    });
    expect((await said('caps')).more).toEqual(['right', 'right', 'cap_exhausted']);
    expect(used('caps')).toMatchObject({ requests: 3, refused: 1 });
  });

  it('leaves its model when it ends, also where a live task goes on', async () => {
    const script = `${asking(WRITE)}
nohup python3 -c "
import os, time
while True: open('/app/net', 'w').write(' '.join(sorted(os.listdir('/sys/class/net')))); time.sleep(0.02)" >/dev/null 2>&1 &
while [ ! -s /app/net ]; do sleep 0.02; done`;
    const test = `#!/bin/bash
sleep 0.2
mkdir -p /logs/verifier
if [ "$(ls /sys/class/net)" = lo ] && [ "$(cat /app/answer)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt`;
    const [rep] = await trial.run({ taskId: 'live', network: 'inference', mode: 'live', script, test });
    expect(rep?.value).toEqual({ reward_f64be: '3ff0000000000000' });
    expect(await left()).toEqual([]);
  });
});

describe('a proxy that fails', () => {
  it('before the agent has started is made again, and counted', async () => {
    let failures = 1;
    const counters = { faults: 0 };
    const engine = hookedEngine(trial.context.engine, {
      before: async (call) => {
        if (call === 'connect' && failures-- > 0)
          throw new EvaluatorError('engine_error', 'connect: refused');
      },
    });
    const [rep] = await trial.run({
      taskId: 'again',
      network: 'inference',
      script: asking(WRITE),
      engine,
      counters,
    });
    expect(rep).toMatchObject({ outcome: 'completed', start_retries: 1 });
    expect(counters.faults).toBe(1);
    expect(await left()).toEqual([]);
  });

  it.each(['connect', 'createExec'])(
    'at %s every time ends the run, with nothing left of it',
    async (failing) => {
      const engine = hookedEngine(trial.context.engine, {
        before: async (call) => {
          if (call === failing) throw new EvaluatorError('engine_timeout', `${call}: late`);
        },
      });
      const run = trial.run({ taskId: 'never', network: 'inference', script: 'true', engine });
      expect(await rejectionCode(run)).toBe('engine_timeout');
      expect(await left()).toEqual([]);
    },
  );

  it('after it has is the affair of the agent, whose word stands', async () => {
    const engine = whenStarted((real, proxy) => real.kill(proxy));
    const script = `sleep 1\n${asking(`open('/app/answer', 'w').write('right')`)}`;
    const [rep] = await trial.run({ taskId: 'died', network: 'inference', script, engine });
    expect(await said('died')).toEqual({ answer: 'no model' });
    expect(rep).toMatchObject({ outcome: 'completed', value: { reward_f64be: '3ff0000000000000' } });
    expect(used('died')).toMatchObject({ requests: 0 });
  });

  it.each<[string, (engine: Engine, proxy: string) => Promise<unknown>]>([
    ['was removed by somebody', (engine, proxy) => engine.remove(proxy)],
    [
      'was started again by somebody',
      async (engine, proxy) => {
        await engine.kill(proxy);
        await engine.waitExit(proxy, 10_000);
        await engine.start(proxy);
      },
    ],
  ])('because it %s ends the run', async (name, act) => {
    const run = trial.run({
      taskId: name.replaceAll(' ', '-'),
      network: 'inference',
      script: 'true',
      engine: whenStarted(act),
    });
    expect(await rejectionCode(run)).toBe('container_interfered');
  });

  it('under a misbehaving agent stops nobody but that agent', async () => {
    // Many big requests at once, deep JSON and a flood of connections that say nothing.
    const script = asking(`
import threading
host = base.split('/')[2].split(':')[0]
def flood():
    for _ in range(2):
        try:
            s = socket.create_connection((host, 8080), 5)
            s.sendall(b'POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ' + key.encode() + b'\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
            for _ in range(80): s.sendall(b'10000\\r\\n' + b'[' * 0x10000 + b'\\r\\n')
        except OSError: pass
threads = [threading.Thread(target=flood) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
${WRITE}`);
    const [rep] = await trial.run({ taskId: 'flood', network: 'inference', script });
    expect(rep).toMatchObject({ outcome: 'completed', value: { reward_f64be: '3ff0000000000000' } });
    expect(await left()).toEqual([]);
  });
});
