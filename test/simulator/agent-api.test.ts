import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1';
import { keccak_256 } from '@noble/hashes/sha3';
import { QuoteVerifier } from '@phala/dcap-qvl';
import { DstackClient } from '@phala/dstack-sdk';
import { describe, expect, it } from 'vitest';
import { parseEventLog, replay } from '../../guest/attest/event-log.ts';
import { parseQuote } from '../../guest/attest/quote.ts';
import { parseVmConfig } from '../../guest/attest/vm-config.ts';
import { FAULT_NAMES } from '../../simulator/faults.ts';
import { APP_COMPOSE, faultList, NOW_SECONDS } from './machine.ts';
import { exchange, runningAgent, temporaryFolder } from './socket.ts';

const REPORT_DATA = Buffer.from(Array.from({ length: 64 }, (_, i) => 255 - i));

describe('the npm SDK on the socket', () => {
  it('getQuote: a verifiable quote over its data, and a log that replays to it', async () => {
    const { socketPath, platform } = await runningAgent();
    const reply = await new DstackClient(socketPath).getQuote(REPORT_DATA);
    const bytes = Buffer.from(reply.quote, 'hex');
    const report = new QuoteVerifier(platform.rootDer).verify(bytes, platform.collateral, NOW_SECONDS);
    expect(report.status).toBe('UpToDate');
    const quote = parseQuote(bytes);
    expect(quote.reportData).toEqual(REPORT_DATA);
    expect(replay(parseEventLog(reply.event_log))).toEqual(quote.rtmr);
    expect(reply.replayRtmrs()).toEqual(quote.rtmr);
    expect(reply).toMatchObject({ report_data: REPORT_DATA.toString('hex') });
    expect(parseVmConfig((reply as unknown as { vm_config: string }).vm_config)).toEqual(platform.vmShape);
  });

  it('getQuote: short data is padded on the right', async () => {
    const { socketPath } = await runningAgent();
    const reply = await new DstackClient(socketPath).getQuote(Buffer.from('ab'));
    const padded = Buffer.concat([Buffer.from('ab'), Buffer.alloc(62)]);
    expect(parseQuote(Buffer.from(reply.quote, 'hex')).reportData).toEqual(padded);
  });

  it('info: the app, its registers and its compose file', async () => {
    const { socketPath, platform } = await runningAgent();
    const info = await new DstackClient(socketPath).info();
    expect(info).toMatchObject({
      app_id: platform.appId.toString('hex'),
      instance_id: platform.instanceId.toString('hex'),
      compose_hash: platform.measurement.compose_hash,
      app_name: 'desk',
    });
    expect(info.tcb_info).toMatchObject(platform.registers);
    expect(info.tcb_info).toMatchObject({ app_compose: APP_COMPOSE.toString() });
    expect(info.tcb_info.event_log).toEqual(platform.eventLog);
    expect(new X509Certificate(info.app_cert).subject).toBe('CN=demo-cert');
  });

  it('getTlsKey: a fresh P-256 key and a chain up to the KMS root', async () => {
    const { socketPath, platform } = await runningAgent();
    const client = new DstackClient(socketPath);
    const request = {
      subject: 'guest, with=comma',
      altNames: ['guest.example'],
      usageRaTls: true,
      usageServerAuth: false,
      usageClientAuth: true,
    };
    const reply = await client.getTlsKey({
      ...request,
      notBefore: NOW_SECONDS,
      notAfter: NOW_SECONDS + 3600,
    });
    const [leaf, app, root] = reply.certificate_chain.map((pem) => new X509Certificate(pem));
    expect(leaf?.checkIssued(app as X509Certificate)).toBe(true);
    expect(leaf?.verify((app as X509Certificate).publicKey)).toBe(true);
    expect(app?.verify((root as X509Certificate).publicKey)).toBe(true);
    expect([app?.subject, root?.subject]).toEqual(['CN=Dstack App CA', 'CN=Dstack KMS CA']);
    expect(leaf?.toLegacyObject().subject).toMatchObject({ CN: 'guest, with=comma' });
    expect(leaf?.subjectAltName).toBe('DNS:guest.example');
    expect(leaf?.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(leaf?.validFromDate.getTime()).toBe(NOW_SECONDS * 1000);
    expect(leaf?.validToDate.getTime()).toBe((NOW_SECONDS + 3600) * 1000);
    expect(leaf?.checkPrivateKey(createPrivateKey(reply.key))).toBe(true);
    const kmsKey = root?.publicKey.export({ format: 'der', type: 'spki' }).toString('hex');
    expect(kmsKey).toBe(platform.keyProvider.id);
    expect((await client.getTlsKey(request)).key).not.toBe(reply.key);
  });

  it('getTlsKey: without RA-TLS no evidence is in the leaf', async () => {
    const { socketPath } = await runningAgent();
    const reply = await new DstackClient(socketPath).getTlsKey({ subject: '' });
    expect(Buffer.from(reply.certificate_chain[0] ?? '').length).toBeLessThan(2048);
  });

  it('getKey: the same key for the same path, vouched for up to the KMS', async () => {
    const { socketPath } = await runningAgent();
    const client = new DstackClient(socketPath);
    const one = await client.getKey('a/b', 'test');
    expect(Buffer.from(one.key).toString('hex')).toBe(
      'f656609c2b460e6807a1de01054e46df660d2a29f59f9c1dee1f134a7b4f72b7',
    );
    expect((await client.getKey('a/b', 'test')).key).toEqual(one.key);
    expect((await client.getKey('a/c', 'test')).key).not.toEqual(one.key);
    const recover = (message: Uint8Array, signature: Uint8Array) =>
      secp256k1.Signature.fromCompact(signature.slice(0, 64))
        .addRecoveryBit(signature[64] ?? 0)
        .recoverPublicKey(keccak_256(message))
        .toHex(true);
    const message = `test:${Buffer.from(secp256k1.getPublicKey(one.key, true)).toString('hex')}`;
    const other = await client.getKey('a/c', 'test', 'ed25519');
    const appKey = recover(Buffer.from(message), one.signature_chain[0] as Uint8Array);
    expect(one.signature_chain).toHaveLength(2);
    expect(other.signature_chain[1]).toEqual(one.signature_chain[1]);
    expect(appKey).toMatch(/^0[23][0-9a-f]{64}$/);
  });

  it('version: the release whose certificates it makes', async () => {
    const { socketPath } = await runningAgent();
    expect(await new DstackClient(socketPath).version()).toMatchObject({ version: '0.5.9' });
    const older = await runningAgent({ certForm: 'quote-and-log' });
    expect(await new DstackClient(older.socketPath).version()).toMatchObject({ version: '0.5.8' });
  });
});

describe('the wire', () => {
  it('answers with an explicit length on a socket that only its owner can open', async () => {
    const { socketPath } = await runningAgent();
    expect(statSync(socketPath).mode & 0o777).toBe(0o600);
    const { status, headers, text } = await exchange(socketPath, {
      method: 'POST',
      path: '/Version',
      body: '',
    });
    expect(status).toBe(200);
    expect(Number(headers['content-length'])).toBe(Buffer.byteLength(text));
    expect(headers['transfer-encoding']).toBeUndefined();
  });

  it.each([
    ['an unknown call', 'POST', '/EmitEvent', '{}', /not found/],
    ['another verb', 'GET', '/Info', '', /not found/],
    ['a name of every object', 'POST', '/constructor', '{}', /not found/],
    ['no JSON', 'POST', '/GetQuote', '{', /JSON/],
    ['no object', 'POST', '/GetQuote', '[]', /request/],
    ['hex that is none', 'POST', '/GetQuote', '{"report_data":"0x00"}', /report_data/],
    ['65 bytes', 'POST', '/GetQuote', JSON.stringify({ report_data: '00'.repeat(65) }), /too long/],
    ['an unknown algorithm', 'POST', '/GetKey', '{"algorithm":"rsa"}', /Unsupported/],
    [
      'a validity that ends before it begins',
      'POST',
      '/GetTlsKey',
      '{"not_before":2,"not_after":1}',
      /not_before/,
    ],
    [
      'a body beyond the cap',
      'POST',
      '/GetQuote',
      JSON.stringify({ report_data: '0'.repeat(70_000) }),
      /larger than/,
    ],
  ])('answers 400 with a sentence to %s', async (_, method, path, body, sentence) => {
    const { socketPath } = await runningAgent();
    const { status, text } = await exchange(socketPath, { method, path, body });
    expect(status).toBe(400);
    expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(sentence) });
  });

  it('leaves no socket behind', async () => {
    const { agent, socketPath } = await runningAgent();
    await agent.close();
    expect(existsSync(socketPath)).toBe(false);
  });

  it('refuses a path that is taken, no socket, missing or too long', async () => {
    const folder = temporaryFolder();
    const { socketPath, platform } = await runningAgent();
    writeFileSync(join(folder, 'file'), 'kept');
    mkdirSync(join(folder, 'folder'));
    const taken = [socketPath, join(folder, 'file'), join(folder, 'folder')];
    for (const path of [...taken, join(folder, 'none/agent.sock'), join(folder, 'x'.repeat(120))]) {
      const started = runningAgent({ socketPath: path, platform });
      await expect(started).rejects.toMatchObject({ code: 'usage' });
    }
    expect(existsSync(join(folder, 'file'))).toBe(true);
  });
});

describe('faults of the agent', () => {
  const quoteWith = async (...texts: string[]) => {
    const { socketPath, platform } = await runningAgent({ faults: faultList(...texts) });
    return { reply: await new DstackClient(socketPath).getQuote(REPORT_DATA), platform };
  };
  type Entry = { imr: number; digest: string; event: string; event_payload: string };
  const logOf = (reply: { event_log: string }) => JSON.parse(reply.event_log) as Entry[];

  it('blank-digests: of runtime events alone', async () => {
    const { reply } = await quoteWith('blank-digests');
    expect(logOf(reply).every((entry) => (entry.digest === '') === (entry.imr === 3))).toBe(true);
    const quote = parseQuote(Buffer.from(reply.quote, 'hex'));
    expect(replay(parseEventLog(reply.event_log))).toEqual(quote.rtmr);
    expect(reply.replayRtmrs()[3]).not.toBe(quote.rtmr[3]);
  });

  it('hex-prefix: on every hex value', async () => {
    const { reply, platform } = await quoteWith('hex-prefix');
    expect(reply.quote).toMatch(/^0x0400/);
    for (const { digest, event_payload } of logOf(reply)) {
      expect(digest).toMatch(/^0x/);
      expect(event_payload).toMatch(/^0x/);
    }
    expect(replay(parseEventLog(reply.event_log))[3]).toBe(platform.registers.rtmr3);
  });

  it('empty-names: the log is refused by whoever reads it', async () => {
    const { reply } = await quoteWith('empty-names');
    expect(logOf(reply).every(({ event }) => event === '')).toBe(true);
    expect(() => parseEventLog(reply.event_log)).toThrow(
      expect.objectContaining({ code: 'event_log_invalid' }),
    );
  });

  it('quote-v5: version 5 quotes', async () => {
    const { reply } = await quoteWith('quote-v5');
    expect(parseQuote(Buffer.from(reply.quote, 'hex')).version).toBe(5);
  });

  it('trailing-zeros: reach the client', async () => {
    const { reply } = await quoteWith('trailing-zeros=5');
    expect(parseQuote(Buffer.from(reply.quote, 'hex')).trailing).toHaveLength(5);
  });

  it('hung-call: that call alone is never answered', async () => {
    const { socketPath } = await runningAgent({ faults: faultList('hung-call=GetQuote') });
    const abort = new AbortController();
    const hung = exchange(socketPath, {
      method: 'POST',
      path: '/GetQuote',
      body: '{}',
      signal: abort.signal,
    });
    const outcome = hung.then(
      () => 'answered',
      () => 'aborted',
    );
    // The other call comes later and is answered: an answer to the first would have been here before.
    await new DstackClient(socketPath).getTlsKey({ usageRaTls: true });
    abort.abort();
    expect(await outcome).toBe('aborted');
  });

  it('slow-quote: not before its time', async () => {
    const { socketPath } = await runningAgent({ faults: faultList('slow-quote=60') });
    const before = performance.now();
    await new DstackClient(socketPath).getQuote(REPORT_DATA);
    // Timers may fire up to a millisecond early.
    expect(performance.now() - before).toBeGreaterThanOrEqual(59);
  });

  it('every fault starts', async () => {
    const values: Partial<Record<string, string>> = {
      'slow-quote': '=1',
      'hung-call': '=Version',
      'trailing-zeros': '=1',
    };
    const all = FAULT_NAMES.map((name) => `${name}${values[name] ?? ''}`);
    const { reply } = await quoteWith(...all);
    expect(createHash('sha256').update(reply.quote).digest()).toHaveLength(32);
  });
});
