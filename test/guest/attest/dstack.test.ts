import { generateKeyPairSync, KeyObject, webcrypto } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  connectGuestAgent,
  findGuestAgentSocket,
  GUEST_AGENT_SOCKETS,
  type GuestAgent,
  refuseSimulatorVariable,
  type TlsKeyRequest,
} from '../../../guest/attest/dstack.ts';
import { MAX_QUOTE_BYTES } from '../../../guest/attest/quote.ts';
import { X509CertificateGenerator } from '../../../simulator/x509.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { testPlatform } from '../../support/valid-result.ts';

type Reply = (method: string, body: unknown, response: ServerResponse) => void;

const { pki } = await testPlatform();
const keyPem = pki.pck.key.export({ format: 'pem', type: 'pkcs8' }).toString();
const chain = [pki.pck, pki.root].map(({ certificate }) => certificate.toString('pem'));
const tlsKeyReply = { key: keyPem, certificate_chain: chain };
const quoteReply = { quote: '0400', event_log: '[]', report_data: '', vm_config: '{}' };
const tcb = { mrtd: '0a', rtmr0: '00', rtmr1: '01', rtmr2: '02', rtmr3: '03' };
const registers = Object.fromEntries(Object.entries(tcb).map(([name, byte]) => [name, byte.repeat(48)]));
const infoReply = {
  app_id: 'AB',
  instance_id: '0xcd',
  compose_hash: 'c3'.repeat(32),
  vm_config: '{}',
  tcb_info: JSON.stringify({ ...registers, app_compose: '{}' }),
};
const reportData = Buffer.from(Array.from({ length: 64 }, (_, i) => i));
const tlsRequest: TlsKeyRequest = { subject: 'guest', altNames: [], usages: ['client'], validity: null };

let folder: string;
const servers: Server[] = [];

beforeEach(() => {
  folder = scratchFolder();
});
afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = await request.toArray();
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** A key and its certificate that are in order but for the curve. */
async function makeP384Reply() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({ keys, signingAlgorithm: algorithm });
  const key = KeyObject.from(keys.privateKey).export({ format: 'pem', type: 'pkcs8' }).toString();
  return { key, certificate_chain: [certificate.toString('pem')] };
}
const p384Reply = await makeP384Reply();

/** A guest agent that answers as `reply` says, and what it was asked. */
async function serve(reply: Reply, name = 'agent.sock') {
  const socketPath = join(folder, name);
  const asked: { method: string; body: unknown }[] = [];
  const server = createServer(async (request, response) => {
    const method = request.url ?? '';
    const body = await bodyOf(request);
    asked.push({ method, body });
    reply(method, body, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return { socketPath, asked, server };
}

const answer = (value: unknown): Reply => {
  return (_method, _body, response) =>
    response.end(typeof value === 'string' ? value : JSON.stringify(value));
};
const refuse: Reply = (_method, _body, response) => {
  response.statusCode = 400;
  response.end('{"error":"no such\\u001bthing"}');
};
const hang: Reply = () => {};

async function agentAnswering(value: unknown): Promise<GuestAgent> {
  const { socketPath } = await serve(answer(value));
  return connectGuestAgent({ socketPath, deadlineMs: 10_000 });
}

const code = (name: string) => expect.objectContaining({ code: name });

const CALLS: [string, (agent: GuestAgent) => Promise<unknown>][] = [
  ['Info', (agent) => agent.info()],
  ['GetQuote', (agent) => agent.getQuote(reportData)],
  ['GetTlsKey', (agent) => agent.getTlsKey(tlsRequest)],
];

describe('a guest agent', () => {
  it('is asked for a quote with the report data in hex', async () => {
    const { socketPath, asked } = await serve(answer({ ...quoteReply, quote: '0x04FF' }));
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    const raw = await agent.getQuote(reportData);
    expect(raw).toEqual({ quote: Buffer.of(4, 255), eventLog: '[]', vmConfig: '{}' });
    expect(asked).toEqual([{ method: '/GetQuote', body: { report_data: reportData.toString('hex') } }]);
  });

  it('tells about its VM', async () => {
    const agent = await agentAnswering(infoReply);
    expect(await agent.info()).toEqual({
      appId: 'ab',
      instanceId: 'cd',
      composeHash: 'c3'.repeat(32),
      registers,
      vmConfig: '{}',
    });
  });

  it('gives a key with its chain', async () => {
    const { socketPath, asked } = await serve(answer(tlsKeyReply));
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    expect(await agent.getTlsKey({ ...tlsRequest, altNames: ['guest.invalid'] })).toEqual({
      privateKeyPem: keyPem,
      certificateChainPem: chain,
    });
    const usages = { usage_ra_tls: true, usage_server_auth: false, usage_client_auth: true };
    const body = { subject: 'guest', alt_names: ['guest.invalid'], ...usages };
    expect(asked).toEqual([{ method: '/GetTlsKey', body }]);
  });

  it('is asked for dates only when it has a version', async () => {
    const validity = { notBefore: 1_700_000_000, notAfter: 1_700_003_600 };
    const { socketPath, asked } = await serve((method, body, response) =>
      answer(method === '/Version' ? { version: '0.5.8', rev: '' } : tlsKeyReply)(method, body, response),
    );
    await connectGuestAgent({ socketPath, deadlineMs: 10_000 }).getTlsKey({ ...tlsRequest, validity });
    expect(asked.at(-1)).toMatchObject({ body: { not_before: 1_700_000_000, not_after: 1_700_003_600 } });
  });

  it('without a version is not asked for dates that it would ignore', async () => {
    const { socketPath, asked } = await serve((method, body, response) =>
      (method === '/Version' ? refuse : answer(tlsKeyReply))(method, body, response),
    );
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    const validity = { notBefore: 1, notAfter: 2 };
    await expect(agent.getTlsKey({ ...tlsRequest, validity })).rejects.toThrow(code('guest_agent_error'));
    expect(asked.map(({ method }) => method)).toEqual(['/Version']);
  });

  it('is asked one thing at a time', async () => {
    let active = 0;
    let most = 0;
    const { socketPath } = await serve((_method, _body, response) => {
      most = Math.max(most, ++active);
      setTimeout(() => {
        active--;
        response.end(JSON.stringify(quoteReply));
      }, 10);
    });
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    await Promise.all(Array.from({ length: 4 }, () => agent.getQuote(reportData)));
    expect(most).toBe(1);
  });
});

describe.each(CALLS)('%s', (_name, call) => {
  it('throws on an error reply, whose text reaches the message escaped or not at all', async () => {
    const { socketPath } = await serve(refuse);
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 10_000 }))).rejects.toThrow(
      expect.objectContaining({
        code: 'guest_agent_error',
        message: expect.stringMatching(/^[\x20-\x7e]+$/),
      }),
    );
  });

  it('ends at the deadline when the agent hangs, once, and lets the next call through', async () => {
    const { socketPath, asked } = await serve(hang);
    const agent = connectGuestAgent({ socketPath, deadlineMs: 100 });
    const late = { code: 'guest_agent_timeout', message: expect.stringContaining('within 100 ms') };
    await expect(call(agent)).rejects.toThrow(expect.objectContaining(late));
    await expect(call(agent)).rejects.toThrow(expect.objectContaining(late));
    expect(asked.length).toBeLessThanOrEqual(2);
  });

  it('waits as long as the deadline says, whatever a client of dstack’s own would do', async () => {
    const { socketPath } = await serve(hang);
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      expect(ms).toBe(90_000);
      return AbortSignal.abort();
    });
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 90_000 }))).rejects.toThrow(
      code('guest_agent_timeout'),
    );
    timeout.mockRestore();
  });

  it('ends at the deadline when the agent trickles', async () => {
    const { socketPath } = await serve((_method, _body, response) => {
      const trickle = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(trickle));
    });
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 200 }))).rejects.toThrow(
      code('guest_agent_timeout'),
    );
  });

  it('refuses an endless reply', async () => {
    const { socketPath } = await serve((_method, _body, response) => {
      const chunk = Buffer.alloc(1024 * 1024, 0x20);
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 60_000 }))).rejects.toThrow(
      code('guest_agent_malformed'),
    );
  });

  it('takes no answer with another status than 200', async () => {
    const { socketPath } = await serve((_method, _body, response) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ ...infoReply, ...quoteReply, ...tlsKeyReply }));
    });
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 10_000 }))).rejects.toThrow(
      code('guest_agent_error'),
    );
  });

  it.each(['', 'not JSON', '{', 'null', '[]', '7', '"text"', '{}'])('refuses the reply %j', async (reply) => {
    await expect(call(await agentAnswering(reply))).rejects.toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^guest_agent_(malformed|error)$/) }),
    );
  });

  it('throws when the agent hangs up', async () => {
    const { socketPath } = await serve((_method, _body, response) => response.destroy());
    await expect(call(connectGuestAgent({ socketPath, deadlineMs: 10_000 }))).rejects.toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^guest_agent_(malformed|unreachable)$/) }),
    );
  });

  it('throws when nobody listens on the socket', async () => {
    const { socketPath, server } = await serve(hang);
    const stale = join(folder, 'stale.sock');
    renameSync(socketPath, stale);
    await new Promise((resolve) => server.close(resolve));
    await expect(call(connectGuestAgent({ socketPath: stale, deadlineMs: 10_000 }))).rejects.toThrow(
      code('guest_agent_unreachable'),
    );
  });
});

describe('a malformed reply', () => {
  it.each([
    ['no quote', { quote: undefined }],
    ['an empty quote', { quote: '' }],
    ['a quote that is not hex', { quote: '04zz' }],
    ['half a byte', { quote: '040' }],
    ['a quote above 64 KiB', { quote: '00'.repeat(MAX_QUOTE_BYTES + 2) }],
    ['a log that is not text', { event_log: [] }],
    ['no vm_config', { vm_config: undefined }],
  ])('to GetQuote: %s', async (_, members) => {
    const agent = await agentAnswering({ ...quoteReply, ...members });
    await expect(agent.getQuote(reportData)).rejects.toThrow(code('guest_agent_malformed'));
  });

  it.each([
    ['a short register', { tcb_info: JSON.stringify({ ...registers, rtmr0: '00' }) }],
    ['tcb_info that is no JSON', { tcb_info: '{' }],
    ['tcb_info that is null', { tcb_info: 'null' }],
    ['a compose hash that is not hex', { compose_hash: 'zz'.repeat(32) }],
  ])('to Info: %s', async (_, members) => {
    const agent = await agentAnswering({ ...infoReply, ...members });
    await expect(agent.info()).rejects.toThrow(code('guest_agent_malformed'));
  });

  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const pemOf = (key: typeof stranger) => key.export({ format: 'pem', type: 'pkcs8' }).toString();
  it.each([
    ['no chain', { certificate_chain: [] }],
    ['a chain that is no PEM', { certificate_chain: ['x'] }],
    ['the issuer first', { certificate_chain: chain.toReversed() }],
    ['a key that is no PEM', { key: 'secret' }],
    ['the key of another certificate', { key: pemOf(stranger) }],
    ['a P-384 key', p384Reply],
  ])('to GetTlsKey: %s; the key is in no message', async (_, members) => {
    const reply = { ...tlsKeyReply, ...members };
    const error = await (await agentAnswering(reply)).getTlsKey(tlsRequest).catch((e) => e);
    expect(error).toEqual(code('guest_agent_malformed'));
    expect(`${error.stack}${JSON.stringify(error.cause)}`).not.toContain(reply.key);
  });
});

describe('a request', () => {
  it.each([
    ['text of 64 characters', 'ab'.repeat(32) as unknown as Buffer],
    ['an array of 64 bytes', new Uint8Array(64) as Buffer],
    ['63 bytes', Buffer.alloc(63)],
    ['65 bytes', Buffer.alloc(65)],
    ['none', Buffer.alloc(0)],
  ])('for a quote with report data of %s is not sent', async (_, data) => {
    const { socketPath, asked } = await serve(answer(quoteReply));
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    await expect(agent.getQuote(data)).rejects.toThrow(code('guest_agent_request_invalid'));
    expect(asked).toEqual([]);
  });

  it.each<[string, Partial<TlsKeyRequest>]>([
    ['a subject outside ASCII', { subject: 'gäst' }],
    ['a subject with a newline', { subject: 'guest\n' }],
    ['a name of 254 characters', { altNames: ['x'.repeat(254)] }],
    ['a name outside ASCII', { altNames: ['ok', 'gäst'] }],
    ['17 names', { altNames: Array.from({ length: 17 }, () => 'x') }],
    ['a date that is no integer', { validity: { notBefore: 0.5, notAfter: 1 } }],
    ['a date that is no number', { validity: { notBefore: 0, notAfter: Number.NaN } }],
  ])('for a key with %s is not sent', async (_, members) => {
    const { socketPath, asked } = await serve(answer(tlsKeyReply));
    const agent = connectGuestAgent({ socketPath, deadlineMs: 10_000 });
    await expect(agent.getTlsKey({ ...tlsRequest, ...members })).rejects.toThrow(
      code('guest_agent_request_invalid'),
    );
    expect(asked).toEqual([]);
  });
});

describe('the socket', () => {
  it('is the one given, whatever the simulator’s variable says', async () => {
    const decoy = await serve(answer(quoteReply), 'decoy.sock');
    const { socketPath, asked } = await serve(answer(quoteReply));
    vi.stubEnv('DSTACK_SIMULATOR_ENDPOINT', decoy.socketPath);
    await connectGuestAgent({ socketPath, deadlineMs: 10_000 }).getQuote(reportData);
    expect([asked.length, decoy.asked.length]).toEqual([1, 0]);
  });

  it.each([
    '',
    'unix:///var/run/dstack.sock',
    'http://127.0.0.1:8090',
    'dstack.sock',
    '/nowhere/dstack.sock',
  ])('is not %j', (socketPath) => {
    expect(() => connectGuestAgent({ socketPath, deadlineMs: 10_000 })).toThrow(
      code('guest_agent_unreachable'),
    );
  });

  it('is not a file', () => {
    const socketPath = join(folder, 'file');
    writeFileSync(socketPath, '');
    expect(() => connectGuestAgent({ socketPath, deadlineMs: 10_000 })).toThrow(
      code('guest_agent_unreachable'),
    );
  });

  it('is found at the first place that has one', async () => {
    const { socketPath } = await serve(hang);
    expect(findGuestAgentSocket([join(folder, 'none'), folder, socketPath])).toBe(socketPath);
    expect(() => findGuestAgentSocket([join(folder, 'none')])).toThrow(code('guest_agent_unreachable'));
    expect(GUEST_AGENT_SOCKETS).toHaveLength(4);
  });
});

describe('refuseSimulatorVariable', () => {
  it.each(['DSTACK_SIMULATOR_ENDPOINT', 'TAPPD_SIMULATOR_ENDPOINT'])(
    'refuses %s, even when empty',
    (name) => {
      expect(() => refuseSimulatorVariable({ [name]: '' })).toThrow(code('simulator_variable_set'));
    },
  );

  it('lets any other environment pass', () => {
    expect(() =>
      refuseSimulatorVariable({ PATH: '/bin', DSTACK_SIMULATOR_ENDPOINT: undefined }),
    ).not.toThrow();
  });
});
