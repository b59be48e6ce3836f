import fc from 'fast-check';
import forge from 'node-forge';
import { describe, expect, it } from 'vitest';
import { enumerated, integer, octetString, oid, sequence } from '../../simulator/der.ts';

const decode = (der: Buffer) => forge.asn1.fromDer(der.toString('binary'));

describe('DER', () => {
  it('encodes what another decoder reads back', () => {
    fc.assert(
      fc.property(fc.nat(0xffff), fc.uint8Array({ maxLength: 70_000, size: 'max' }), (number, bytes) => {
        const node = decode(sequence(integer(number), octetString(bytes)));
        const [first, second] = node.value as forge.asn1.Asn1[];
        expect(forge.asn1.derToInteger(first?.value as string)).toBe(number);
        expect(Buffer.from(second?.value as string, 'binary')).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 50 },
    );
  });

  it('writes lengths in their shortest form', () => {
    for (const [size, head] of [
      [127, '047f'],
      [128, '048180'],
      [255, '0481ff'],
      [256, '04820100'],
      [65_536, '0483010000'],
    ] as const) {
      expect(octetString(Buffer.alloc(size)).toString('hex').slice(0, head.length)).toBe(head);
    }
  });

  it('writes integers in their shortest form', () => {
    const hex = [0, 127, 128, 255, 256, 32_767, 32_768].map((n) => integer(n).toString('hex'));
    expect(hex).toEqual(['020100', '02017f', '02020080', '020200ff', '02020100', '02027fff', '0203008000']);
  });

  it('encodes object identifiers and enumerations', () => {
    for (const dotted of ['1.2.840.113741.1.13.1', '1.3.6.1.4.1.62397.1.8', '2.5.29.31']) {
      expect(forge.asn1.derToOid(decode(oid(dotted)).value as string)).toBe(dotted);
    }
    expect(enumerated(1).toString('hex')).toBe('0a0101');
  });
});
