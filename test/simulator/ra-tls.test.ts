import { createHash, X509Certificate as NodeCertificate } from 'node:crypto';
import { DstackClient } from '@phala/dstack-sdk';
import forge from 'node-forge';
import { describe, expect, it } from 'vitest';
import { parseEventLog, replay } from '../../guest/attest/event-log.ts';
import { parseQuote } from '../../guest/attest/quote.ts';
import { RA_TLS_OIDS } from '../../simulator/ra-tls.ts';
import { X509Certificate } from '../../simulator/x509.ts';
import { runningAgent } from './socket.ts';

/** The value of an extension: what its DER OCTET STRING holds, or null. */
function extensionOf(pem: string, oid: string): Buffer | null {
  const value = new X509Certificate(pem).getExtension(oid)?.value;
  if (!value) return null;
  const node = forge.asn1.fromDer(Buffer.from(value).toString('binary'));
  expect(node.type).toBe(forge.asn1.Type.OCTETSTRING);
  return Buffer.from(node.value as string, 'binary');
}

/** A SCALE reader of the test's own, by the codec's description. */
class Scale {
  private at = 0;
  private readonly bytes: Buffer;
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
  take(length: number): Buffer {
    const part = this.bytes.subarray(this.at, this.at + length);
    expect(part).toHaveLength(length);
    this.at += length;
    return part;
  }
  compact(): number {
    const mode = (this.bytes[this.at] ?? 0) & 3;
    if (mode === 0) return this.take(1).readUInt8() >> 2;
    if (mode === 1) return this.take(2).readUInt16LE() >> 2;
    expect(mode).toBe(2);
    return this.take(4).readUInt32LE() >>> 2;
  }
  field = () => this.take(this.compact());
  list = <T>(item: () => T) => Array.from({ length: this.compact() }, item);
  isAtEnd = () => this.at === this.bytes.length;
}

async function leafOf(certForm: 'quote-and-log' | 'versioned') {
  const { socketPath, platform } = await runningAgent({ certForm });
  const { certificate_chain } = await new DstackClient(socketPath).getTlsKey({ usageRaTls: true });
  const pem = certificate_chain[0] ?? '';
  const spki = new NodeCertificate(pem).publicKey.export({ format: 'der', type: 'spki' });
  const reportData = createHash('sha512').update('ratls-cert:').update(spki).digest();
  return { pem, platform, reportData };
}

describe('RA-TLS certificates', () => {
  it.each(['versioned', 'quote-and-log'] as const)('name app and usage: %s', async (form) => {
    const { pem, platform } = await leafOf(form);
    expect(extensionOf(pem, RA_TLS_OIDS.appId)).toEqual(platform.appId);
    expect(extensionOf(pem, RA_TLS_OIDS.usage)?.toString()).toBe('app:custom');
  });

  it('up to 0.5.8 carry a quote over their key, and the log', async () => {
    const { pem, reportData } = await leafOf('quote-and-log');
    const quote = parseQuote(extensionOf(pem, RA_TLS_OIDS.quote) ?? Buffer.alloc(0));
    expect(quote.reportData).toEqual(reportData);
    const log = parseEventLog(extensionOf(pem, RA_TLS_OIDS.eventLog)?.toString() ?? '');
    expect(replay(log)).toEqual(quote.rtmr);
    expect(extensionOf(pem, RA_TLS_OIDS.attestation)).toBeNull();
  });

  it('from 0.5.9 carry a versioned attestation with a stripped log', async () => {
    const { pem, platform, reportData } = await leafOf('versioned');
    const bytes = extensionOf(pem, RA_TLS_OIDS.attestation) ?? Buffer.alloc(0);
    expect(bytes.length).toBeLessThan(64 * 1024);
    const scale = new Scale(bytes);
    expect(scale.take(2).toString('hex')).toBe('0000');
    const quote = parseQuote(scale.field());
    expect(quote.reportData).toEqual(reportData);
    const events = scale.list(() => ({
      imr: scale.take(4).readUInt32LE(),
      event_type: scale.take(4).readUInt32LE(),
      digest: scale.field().toString('hex'),
      event: scale.field().toString(),
      event_payload: scale.field().toString('hex'),
    }));
    expect(events.every(({ imr, digest }) => imr === 3 && digest === '')).toBe(true);
    expect(replay(parseEventLog(events))[3]).toBe(quote.rtmr[3]);
    const runtime = scale.list(() => [scale.field().toString(), scale.field().toString('hex')]);
    expect(runtime).toEqual(events.map(({ event, event_payload }) => [event, event_payload]));
    expect(scale.take(64)).toEqual(reportData);
    expect(JSON.parse(scale.field().toString())).toMatchObject({ cpu_count: platform.vmShape.vcpu });
    expect(scale.isAtEnd()).toBe(true);
    expect(extensionOf(pem, RA_TLS_OIDS.quote)).toBeNull();
    expect(extensionOf(pem, RA_TLS_OIDS.eventLog)).toBeNull();
  });
});
