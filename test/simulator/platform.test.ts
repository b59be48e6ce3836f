import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { QuoteVerifier } from '@phala/dcap-qvl';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseEventLog, readRuntimeClaims, replay, verifyMrConfigId } from '../../guest/attest/event-log.ts';
import { isDebugTd, parseQuote } from '../../guest/attest/quote.ts';
import { osImageHash } from '../../guest/wire/measurement.ts';
import type { Platform } from '../../simulator/platform.ts';
import { APP_COMPOSE, faultList, machine, NOW_MS, NOW_SECONDS } from './machine.ts';

const REPORT_DATA = Buffer.alloc(64, 0xa5);
const LAYOUTS = [{ version: 4 }, { version: 5, body: 'td10' }, { version: 5, body: 'td15' }] as const;

function verify(platform: Platform, quote: Buffer, seconds = NOW_SECONDS) {
  return new QuoteVerifier(platform.rootDer).verify(quote, platform.collateral, seconds);
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('a simulated platform', () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await machine();
  });

  it.each(LAYOUTS)('makes quotes that verify under its own root: $version $body', (layout) => {
    const quote = platform.quote(REPORT_DATA, layout);
    const report = verify(platform, quote);
    expect(report.status).toBe('UpToDate');
    expect(report.advisory_ids).toEqual([]);
    expect(Buffer.from(report.report.asTd10()?.reportData ?? [])).toEqual(REPORT_DATA);
  });

  it.each(LAYOUTS)("makes quotes that fail under Intel's root: $version $body", (layout) => {
    const quote = platform.quote(REPORT_DATA, layout);
    expect(() => QuoteVerifier.newProd().verify(quote, platform.collateral, NOW_SECONDS)).toThrow(
      /certificate chain/,
    );
  });

  it.each(LAYOUTS)('binds every byte of header and body: $version $body', (layout) => {
    const quote = platform.quote(REPORT_DATA, layout);
    const { signedBytes } = parseQuote(quote);
    for (const at of [12, signedBytes.length - 80, signedBytes.length - 1]) {
      const forged = Buffer.from(quote);
      forged[at] = (forged[at] ?? 0) ^ 1;
      expect(() => verify(platform, forged)).toThrow();
    }
  });

  it('fills a quote that parses to what it publishes', () => {
    const quote = parseQuote(platform.quote(REPORT_DATA, { version: 4 }));
    expect(quote.mrtd).toBe(platform.measurement.mrtd);
    expect(quote.rtmr.slice(0, 3)).toEqual([
      platform.measurement.rtmr0,
      platform.measurement.rtmr1,
      platform.measurement.rtmr2,
    ]);
    expect(quote.mrSignerSeam).toBe('0'.repeat(96));
    expect(isDebugTd(quote)).toBe(false);
    expect(quote.mrConfigId).toBe(`01${sha256(APP_COMPOSE)}${'00'.repeat(15)}`);
    expect(quote.reportData).toEqual(REPORT_DATA);
    expect(quote.trailing).toHaveLength(0);
    expect(platform.measurement.compose_hash).toBe(sha256(APP_COMPOSE));
    expect(platform.measurement.os_image_hash).toBe(osImageHash(platform.measurement));
  });

  it('has an event log that replays to the signed registers and names its app', () => {
    const events = parseEventLog(platform.eventLog);
    const quote = parseQuote(platform.quote(REPORT_DATA, { version: 4 }));
    expect(replay(events)).toEqual(quote.rtmr);
    const claims = readRuntimeClaims(events);
    expect(claims.composeHash).toBe(platform.measurement.compose_hash);
    expect(claims.keyProvider).toEqual(platform.keyProvider);
    expect(claims.storageFs).toBe('ext4');
    expect(claims.appId).toBe(platform.appId.toString('hex'));
    expect(claims.instanceId).toBe(platform.instanceId.toString('hex'));
    verifyMrConfigId(quote, claims.composeHash);
  });

  it("has dstack's runtime events in dstack's order", () => {
    const names = platform.eventLog.filter((event) => event.imr === 3).map((event) => event.event);
    expect(names).toEqual([
      'system-preparing',
      'app-id',
      'compose-hash',
      'instance-id',
      'boot-mr-done',
      'mr-kms',
      'os-image-hash',
      'key-provider',
      'storage-fs',
      'system-ready',
    ]);
  });

  it('issues a chain of CAs by the names that verifiers read, under a root that says what it is', () => {
    const { pki } = platform;
    const at = (identity: typeof pki.root) => new X509Certificate(identity.certificate.toString('pem'));
    const [root, ca, leaf, tcb] = [at(pki.root), at(pki.platformCa), at(pki.pck), at(pki.tcbSigning)];
    expect(root.subject).toContain('Simulated');
    expect(root.subject).not.toContain('Intel Corporation');
    expect([root.ca, ca.ca, leaf.ca, tcb.ca]).toEqual([true, true, false, false]);
    expect(ca.checkIssued(root) && leaf.checkIssued(ca) && tcb.checkIssued(root)).toBe(true);
    expect(tcb.subject).toContain('CN=Intel SGX TCB Signing');
    expect(leaf.subject).toContain('CN=Intel SGX PCK Certificate');
    expect(ca.subject).toContain('CN=Intel SGX PCK Platform CA');
  });

  it('signs its CRLs by the right CA, current at its time', async () => {
    const { X509Crl } = await import('../../simulator/x509.ts');
    const { pki } = platform;
    const signers = [
      [pki.rootCrl, pki.root],
      [pki.platformCrl, pki.platformCa],
      [pki.processorCrl, pki.processorCa],
    ] as const;
    for (const [der, issuer] of signers) {
      const crl = new X509Crl(Uint8Array.from(der));
      expect(crl.issuer).toBe(issuer.certificate.subject);
      expect(await crl.verify({ publicKey: issuer.certificate.publicKey })).toBe(true);
      expect(crl.thisUpdate.getTime()).toBeLessThan(NOW_MS);
      expect(crl.nextUpdate?.getTime()).toBeGreaterThan(NOW_MS);
      expect(crl.entries).toHaveLength(0);
    }
  });

  it('refuses report data of any other length than 64 bytes, and a short seed', async () => {
    expect(() => platform.quote(Buffer.alloc(63), { version: 4 })).toThrow(RangeError);
    await expect(machine({ seed: Buffer.alloc(15) })).rejects.toMatchObject({ code: 'usage' });
  });
});

describe('the seed', () => {
  const rootKey = (platform: Platform) =>
    createPublicKey(platform.pki.root.key).export({ format: 'der', type: 'spki' });

  it('decides keys, registers and identities alone, whatever the time', async () => {
    const [one, two] = [await machine(), await machine({ nowMs: NOW_MS + 86_400_000 })];
    expect(two.measurement).toEqual(one.measurement);
    expect(two.keyProvider).toEqual(one.keyProvider);
    expect(rootKey(two)).toEqual(rootKey(one));
    expect(two.pki.pck.certificate.serialNumber).toBe(one.pki.pck.certificate.serialNumber);
    expect(two.eventLog).toEqual(one.eventLog);
  });

  it('gives the values that were published for it', async () => {
    const platform = await machine();
    expect(sha256(rootKey(platform))).toBe(
      'f90b233b98decb030ba11f9090d2b90887a8f309c4932e9aa45d4cbc7ba18148',
    );
    expect(platform.measurement.os_image_hash).toBe(
      'cc6cae8136aa04f39554566720affc506df8bf14c64f8aa0340369e423242e77',
    );
  });

  it('gives others when it is another; a compose file changes the compose hash alone', async () => {
    const [one, other] = [await machine(), await machine({ seed: Buffer.alloc(32, 8) })];
    expect(rootKey(other)).not.toEqual(rootKey(one));
    expect(other.measurement.mrtd).not.toBe(one.measurement.mrtd);
    const edited = await machine({ appCompose: Buffer.from('{}') });
    const { compose_hash } = edited.measurement;
    expect(edited.measurement).toEqual({ ...one.measurement, compose_hash });
    expect(compose_hash).not.toBe(one.measurement.compose_hash);
  });

  it('gives RTMR0 another value for another VM shape', async () => {
    const [one, large] = [await machine(), await machine({ vmShape: { vcpu: 8, memory_mb: 16_384 } })];
    expect(large.measurement).toEqual({ ...one.measurement, rtmr0: large.measurement.rtmr0 });
    expect(large.measurement.rtmr0).not.toBe(one.measurement.rtmr0);
  });

  it("can carry a boot that is someone else's", async () => {
    const digest = 'ab'.repeat(48);
    const events = [{ imr: 0, event_type: 4, digest, event: '', event_payload: '' }];
    const platform = await machine({ boot: { mrtd: 'cd'.repeat(48), events } });
    expect(platform.measurement.mrtd).toBe('cd'.repeat(48));
    expect(platform.measurement.rtmr1).toBe('0'.repeat(96));
    const { rtmr } = parseQuote(platform.quote(REPORT_DATA, { version: 4 }));
    expect(replay(parseEventLog(platform.eventLog))).toEqual(rtmr);
  });
});

describe('faults of the platform', () => {
  const quoteOf = (platform: Platform) => platform.quote(REPORT_DATA, { version: 4 });

  it('wrong-measurement: a signed quote whose MRTD is not the published one', async () => {
    const platform = await machine({ faults: faultList('wrong-measurement') });
    expect(platform.measurement).toEqual((await machine()).measurement);
    const quote = quoteOf(platform);
    verify(platform, quote);
    expect(parseQuote(quote).mrtd).not.toBe(platform.measurement.mrtd);
    expect(replay(parseEventLog(platform.eventLog))).toEqual(parseQuote(quote).rtmr);
  });

  it('debug-td: the debug bit is set and signed', async () => {
    const platform = await machine({ faults: faultList('debug-td') });
    expect(isDebugTd(parseQuote(quoteOf(platform)))).toBe(true);
    expect(() => verify(platform, quoteOf(platform))).toThrow(/Debug/);
  });

  it('tcb-expired: the collateral is out of date', async () => {
    const platform = await machine({ faults: faultList('tcb-expired') });
    expect(() => verify(platform, quoteOf(platform))).toThrow(/TCBInfo expired/);
    expect(verify(platform, quoteOf(platform), NOW_SECONDS - 40 * 86_400).status).toBe('UpToDate');
  });

  it('tcb-out-of-date: the platform is below the newest level', async () => {
    const platform = await machine({ faults: faultList('tcb-out-of-date') });
    expect(verify(platform, quoteOf(platform)).status).toBe('OutOfDate');
  });

  it('pck-revoked: the CRL lists the PCK certificate', async () => {
    const platform = await machine({ faults: faultList('pck-revoked') });
    expect(() => verify(platform, quoteOf(platform))).toThrow(/revoked/);
  });

  it('trailing-zeros: zero bytes follow the quote', async () => {
    const platform = await machine({ faults: faultList('trailing-zeros=17') });
    expect(parseQuote(quoteOf(platform)).trailing).toEqual(Buffer.alloc(17));
    expect(verify(platform, quoteOf(platform)).status).toBe('UpToDate');
  });

  it('storage-zfs: the log says zfs, and replays', async () => {
    const platform = await machine({ faults: faultList('storage-zfs') });
    const events = parseEventLog(platform.eventLog);
    const storage = events.find((event) => 'event' in event && event.event === 'storage-fs');
    expect(storage).toMatchObject({ event_payload: Buffer.from('zfs').toString('hex') });
    expect(replay(events)).toEqual(parseQuote(quoteOf(platform)).rtmr);
  });
});
