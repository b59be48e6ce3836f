import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cutToDeclaredLength,
  hasIntelSeam,
  isDebugTd,
  MAX_QUOTE_BYTES,
  parseQuote,
} from '../../../guest/attest/quote.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { testPlatform } from '../../support/valid-result.ts';

const platform = await testPlatform();
const reportData = Buffer.from(Array.from({ length: 64 }, (_, i) => i));
const layouts = [
  { name: 'v4', bytes: platform.quote(reportData, { version: 4 }), body: 48, bodyBytes: 584 },
  {
    name: 'v5, TD 1.0',
    bytes: platform.quote(reportData, { version: 5, body: 'td10' }),
    body: 54,
    bodyBytes: 584,
  },
  {
    name: 'v5, TD 1.5',
    bytes: platform.quote(reportData, { version: 5, body: 'td15' }),
    body: 54,
    bodyBytes: 648,
  },
];
const v4 = platform.quote(reportData, { version: 4 });

const refused = expect.objectContaining({ code: 'quote_malformed', fault: 'attestation' });

/** The v4 quote with bytes written over it. */
function patched(offset: number, ...bytes: number[]): Buffer {
  const copy = Buffer.from(v4);
  copy.set(bytes, offset);
  return copy;
}

describe.each(layouts)('a $name quote', ({ bytes, body, bodyBytes }) => {
  it('gives the fields at their offsets', () => {
    const quote = parseQuote(bytes);
    const { registers } = platform;
    expect(quote.mrtd).toBe(registers.mrtd);
    expect(quote.rtmr).toEqual([registers.rtmr0, registers.rtmr1, registers.rtmr2, registers.rtmr3]);
    expect(quote.reportData).toEqual(reportData);
    expect(quote.mrConfigId).toBe(`01${platform.measurement.compose_hash}${'00'.repeat(15)}`);
    expect(quote.tdAttributes).toBe('0000001000000000');
    expect(quote.xfam).toBe('e702060000000000');
    expect(quote.signedBytes).toEqual(bytes.subarray(0, body + bodyBytes));
    expect(quote.signature).toEqual(bytes.subarray(body + bodyBytes + 4, body + bodyBytes + 68));
    expect(quote.attestationKey).toHaveLength(64);
    expect(quote.qeReport).toHaveLength(384);
    expect(quote.qeReportSignature).toHaveLength(64);
    expect(quote.qeAuthData).toHaveLength(32);
    expect(quote.certChainPem).toMatch(/^-----BEGIN CERTIFICATE-----\n/);
    expect(quote.declaredLength).toBe(bytes.length);
    expect(quote.mrServiceTd).toBe(bodyBytes === 648 ? '00'.repeat(48) : null);
  });

  it('is refused at every shorter length', () => {
    for (let length = 0; length < bytes.length; length++) {
      expect(() => parseQuote(bytes.subarray(0, length))).toThrow(refused);
    }
  });

  it('throws nothing but quote_malformed, whatever is done to it', () => {
    const edits = fc.array(fc.record({ at: fc.nat(bytes.length - 1), byte: fc.nat(255) }), { maxLength: 4 });
    const cut = fc.record({ from: fc.nat(bytes.length), insert: fc.uint8Array({ maxLength: 64 }) });
    fc.assert(
      fc.property(edits, cut, fc.boolean(), (changes, { from, insert }, splice) => {
        const copy = Buffer.from(bytes);
        for (const { at, byte } of changes) copy[at] = byte;
        const input = splice ? Buffer.concat([copy.subarray(0, from), insert]) : copy;
        try {
          const quote = parseQuote(input);
          expect(quote.declaredLength + quote.trailing.length).toBe(input.length);
        } catch (error) {
          expect(error).toBeInstanceOf(EvaluatorError);
          expect(error).toEqual(refused);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('parseQuote', () => {
  it.each([
    ['version 3', patched(0, 3)],
    ['version 6', patched(0, 6)],
    ['key type P-384', patched(2, 3)],
    ['an SGX quote', patched(4, 0)],
    ['another vendor', patched(12, 0)],
    ['signature data shorter than it is', patched(632, 0, 0, 0, 0)],
    ['signature data of 4 GiB', patched(632, 255, 255, 255, 255)],
    ['a PCK chain where the QE report belongs', patched(764, 5)],
    ['certification data of 4 GiB', patched(766, 255, 255, 255, 255)],
    ['certification data that ends early', patched(766, 0, 1, 0, 0)],
    ['QE authentication data of 31 bytes', patched(1218, 31)],
    ['a PCK chain by URL', patched(1252, 3)],
    ['a PCK chain that is too long', patched(1254, 255, 255, 255, 255)],
    ['a PCK chain that ends early', patched(1254, 1, 1, 0, 0)],
    ['a chain that is not PEM', patched(1258, 0)],
    ['bytes outside ASCII in the chain', patched(1300, 255)],
    ['more than 64 KiB', Buffer.concat([v4, Buffer.alloc(MAX_QUOTE_BYTES)])],
  ])('refuses %s', (_, bytes) => {
    expect(() => parseQuote(bytes)).toThrow(refused);
  });

  it('refuses signature data with a byte more than its parts', () => {
    const longer = Buffer.concat([v4, Buffer.of(0)]);
    longer.writeUInt32LE(v4.readUInt32LE(632) + 1, 632);
    expect(() => parseQuote(longer)).toThrow(refused);
  });

  it.each([
    ['version 6', 0, 6],
    ['an SGX body', 48, 1],
    ['an unknown body', 48, 4],
    ['a TD 1.0 type with the TD 1.5 size', 48, 2],
    ['a wrong size', 50, 0],
  ])('refuses, in v5, %s', (_, offset, byte) => {
    const bytes = platform.quote(reportData, { version: 5, body: 'td15' });
    bytes[offset] = byte;
    expect(() => parseQuote(bytes)).toThrow(refused);
  });

  it('shares no memory with its input', () => {
    const bytes = Buffer.from(v4);
    const quote = parseQuote(bytes);
    bytes.fill(0);
    expect(quote.signedBytes).toEqual(v4.subarray(0, 632));
  });
});

describe('cutToDeclaredLength', () => {
  it('drops zero bytes after the quote and keeps them visible to parseQuote', () => {
    const padded = Buffer.concat([v4, Buffer.alloc(70)]);
    expect(cutToDeclaredLength(padded)).toEqual(v4);
    expect(cutToDeclaredLength(v4)).toEqual(v4);
    expect(parseQuote(padded).trailing).toEqual(Buffer.alloc(70));
  });

  it('refuses anything else after the quote', () => {
    const padded = Buffer.concat([v4, Buffer.alloc(70)]);
    padded[padded.length - 1] = 1;
    expect(() => cutToDeclaredLength(padded)).toThrow(refused);
  });
});

describe('attributes of a quote', () => {
  it('see every debug bit', () => {
    expect(isDebugTd(parseQuote(v4))).toBe(false);
    for (let bit = 0; bit < 8; bit++) expect(isDebugTd(parseQuote(patched(168, 1 << bit)))).toBe(true);
  });

  it('see a TDX module that is not Intel’s', () => {
    expect(hasIntelSeam(parseQuote(v4))).toBe(true);
    expect(hasIntelSeam(parseQuote(patched(159, 1)))).toBe(false);
    expect(hasIntelSeam(parseQuote(patched(160, 1)))).toBe(false);
  });
});
