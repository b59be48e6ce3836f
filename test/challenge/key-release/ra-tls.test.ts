import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseMsgpack } from '../../../challenge/key-release/msgpack.ts';
import { RA_TLS_OIDS, readRaTlsEvidence } from '../../../challenge/key-release/ra-tls.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { octetString } from '../../../simulator/der.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { evidenceExtensions } from '../../../simulator/ra-tls.ts';
import { scaleBytes } from '../../../simulator/scale.ts';
import { evidenceFrom } from '../../support/key-client.ts';
import { codeOf } from '../../support/throws.ts';
import { testPlatform } from '../../support/valid-result.ts';

/** The forms of msgpack that serde writes, by its description. */
const u16 = (n: number) => Buffer.from([n >> 8, n & 255]);
const text = (value: string) => Buffer.concat([Buffer.from([0xa0 | value.length]), Buffer.from(value)]);
const map = (...members: [string, Buffer][]) =>
  Buffer.concat([
    Buffer.from([0x80 | members.length]),
    ...members.flatMap(([key, value]) => [text(key), value]),
  ]);
const bin = (value: Buffer) => Buffer.concat([Buffer.from([0xc5]), u16(value.length), value]);
const byte = (n: number) => (n < 128 ? Buffer.from([n]) : Buffer.from([0xcc, n]));
const list = (value: Buffer) =>
  Buffer.concat([Buffer.from([0xdc]), u16(value.length), ...[...value].map(byte)]);
const version1 = (quote: Buffer, kind = 'tdx', version = 1) =>
  map(
    ['version', Buffer.from([version])],
    [
      'platform',
      map(['kind', text(kind)], ['data', map(['quote', quote], ['event_log', Buffer.from([0x90])])]),
    ],
    ['stack', map(['kind', text('dstack')], ['data', map(['config', text('{}')])])],
  );

let platform: Platform;
let quote: Buffer;
beforeAll(async () => {
  platform = await testPlatform();
  quote = platform.quote(Buffer.alloc(64, 7), { version: 4 });
});

const read = (values: Partial<Record<keyof typeof RA_TLS_OIDS, Buffer>>) =>
  readRaTlsEvidence((oid) => {
    const name = Object.entries(RA_TLS_OIDS).find(([, known]) => known === oid)?.[0];
    return values[name as keyof typeof RA_TLS_OIDS] ?? null;
  });
const appId = octetString(Buffer.from('0102', 'hex'));

describe("a certificate's evidence", () => {
  it.each(['versioned', 'quote-and-log'] as const)('is read from form %s', (form) => {
    const extensions = evidenceExtensions(evidenceFrom(platform)(Buffer.alloc(64, 7)), form);
    const found = readRaTlsEvidence((oid) => {
      if (oid === RA_TLS_OIDS.appId) return appId;
      const value = extensions.find(({ type }) => type === oid)?.value;
      return value ? Buffer.from(value) : null;
    });
    expect(found).toMatchObject({ form, appId: '0102' });
    expect(found.quoteBytes.subarray(568, 632)).toEqual(Buffer.alloc(64, 7));
  });

  it.each([
    ['a list of numbers', () => list(quote)],
    ['bytes', () => bin(quote)],
  ])('is read from version 1, its quote being %s', (_name, encode) => {
    const found = read({ appId, attestation: octetString(version1(encode())) });
    expect(found.quoteBytes).toEqual(quote);
    expect(found.form).toBe('versioned');
  });

  it('is the versioned one where there are two', () => {
    const attestation = octetString(Buffer.concat([Buffer.alloc(2), scaleBytes(quote)]));
    const other = platform.quote(Buffer.alloc(64, 8), { version: 4 });
    expect(read({ appId, attestation, quote: octetString(other) }).quoteBytes).toEqual(quote);
  });

  it('may have zeros behind its quote, and nothing else', () => {
    const padded = (tail: Buffer) => octetString(Buffer.concat([quote, tail]));
    expect(read({ appId, quote: padded(Buffer.alloc(100)) }).quoteBytes).toEqual(quote);
    expect(codeOf(() => read({ appId, quote: padded(Buffer.from([1])) }))).toBe('ra_tls_evidence_malformed');
  });

  it.each([
    ['none', () => ({}), 'ra_tls_evidence_missing'],
    ['no app id', () => ({ quote: octetString(quote) }), 'ra_tls_evidence_missing'],
    ['no quote', () => ({ appId }), 'ra_tls_evidence_missing'],
    ['no DER', () => ({ appId, quote: Buffer.from('ff', 'hex') }), 'ra_tls_evidence_malformed'],
    [
      'something behind the DER',
      () => ({ appId, quote: Buffer.concat([octetString(quote), appId]) }),
      'ra_tls_evidence_malformed',
    ],
    ['another type', () => ({ appId, quote: Buffer.from('0500', 'hex') }), 'ra_tls_evidence_malformed'],
    [
      '64 KiB and more',
      () => ({ appId, quote: octetString(Buffer.alloc(64 * 1024)) }),
      'ra_tls_evidence_malformed',
    ],
    [
      'an empty attestation',
      () => ({ appId, attestation: octetString(Buffer.alloc(0)) }),
      'ra_tls_evidence_malformed',
    ],
    [
      'a length beyond its end',
      () => ({ appId, attestation: octetString(Buffer.from('00000241', 'hex')) }),
      'ra_tls_evidence_malformed',
    ],
    [
      'a big-integer length',
      () => ({ appId, attestation: octetString(Buffer.from('000003ffffffff', 'hex')) }),
      'ra_tls_evidence_malformed',
    ],
    [
      'another TEE',
      () => ({ appId, attestation: octetString(Buffer.from('0001', 'hex')) }),
      'ra_tls_evidence_unsupported',
    ],
    [
      'a later version',
      () => ({ appId, attestation: octetString(version1(bin(quote), 'tdx', 2)) }),
      'ra_tls_evidence_unsupported',
    ],
    [
      'another TEE in version 1',
      () => ({ appId, attestation: octetString(version1(bin(quote), 'sev-snp')) }),
      'ra_tls_evidence_unsupported',
    ],
    [
      'a text for a quote',
      () => ({ appId, attestation: octetString(version1(text('quote'))) }),
      'ra_tls_evidence_malformed',
    ],
  ])('%s is refused', (_name, values, code) => {
    expect(codeOf(() => read(values()))).toBe(code);
  });

  it('of any bytes is read or refused with a code', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('quote', 'attestation', 'appId'),
        fc.uint8Array({ maxLength: 200 }),
        (name, bytes) => {
          try {
            read({ appId, quote: octetString(quote), [name]: octetString(bytes) });
          } catch (error) {
            expect(isEvaluatorError(error)).toBe(true);
          }
        },
      ),
    );
  });
});

describe('msgpack', () => {
  it('is read in each of its forms', () => {
    expect(parseMsgpack(map(['a', Buffer.from([0xc0])], ['b', Buffer.from([0x92, 0xc2, 0xc3])]))).toEqual({
      a: null,
      b: [false, true],
    });
    expect(parseMsgpack(Buffer.from('cd0102', 'hex'))).toBe(258);
    expect(parseMsgpack(Buffer.from('ce00010000', 'hex'))).toBe(65536);
    expect(parseMsgpack(Buffer.from('d90161', 'hex'))).toBe('a');
    expect(parseMsgpack(Buffer.from('de0001a16105', 'hex'))).toEqual({ a: 5 });
  });

  it.each([
    ['nothing', ''],
    ['too short', 'a461'],
    ['something behind', '0000'],
    ['a key twice', '82a16101a16102'],
    ['a number for a key', '810101'],
    ['a float', 'cb0000000000000000'],
    ['an extension type', 'd40000'],
    ['a list of four billion', 'ddffffffff'],
    ['nine levels', '919191919191919191c0'],
  ])('%s is refused', (_name, hex) => {
    expect(codeOf(() => parseMsgpack(Buffer.from(hex, 'hex')))).toBe('ra_tls_evidence_malformed');
  });

  it('has no key that reaches a prototype', () => {
    const value = parseMsgpack(map(['__proto__', map(['version', Buffer.from([1])])]));
    expect((value as { version?: unknown }).version).toBeUndefined();
  });
});
