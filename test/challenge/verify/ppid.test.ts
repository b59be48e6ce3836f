import { describe, expect, it } from 'vitest';
import { platformOf } from '../../../challenge/verify/ppid.ts';
import { cutToDeclaredLength, parseQuote } from '../../../guest/attest/quote.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { pemChain } from '../../../simulator/certificates.ts';
import { deriveBytes } from '../../../simulator/seed.ts';
import { realTdx } from '../../support/real-tdx.ts';
import { codeOf } from '../../support/throws.ts';
import { testPlatform } from '../../support/valid-result.ts';

describe('the platform of a quote', () => {
  it('is the hash of the PPID in its PCK certificate', async () => {
    const platform = await testPlatform();
    const quote = parseQuote(platform.quote(Buffer.alloc(64), { version: 4 }));
    expect(platformOf(quote)).toBe(sha256Hex(deriveBytes(platform.seed, 'ppid', 16)));
    const other = await testPlatform({ seed: Buffer.alloc(32, 3) });
    const second = parseQuote(other.quote(Buffer.alloc(64), { version: 4 }));
    expect(platformOf(second)).not.toBe(platformOf(quote));
  });

  it('must be there', async () => {
    const { pki } = await testPlatform();
    const certChainPem = pemChain(pki.tcbSigning, pki.platformCa, pki.root);
    expect(codeOf(() => platformOf({ certChainPem }))).toBe('platform_unidentified');
    expect(codeOf(() => platformOf({ certChainPem: '' }))).toBe('certificate_malformed');
  });

  it.skipIf(realTdx.absent)(`is there in a genuine one (${realTdx.why})`, () => {
    const quote = parseQuote(cutToDeclaredLength(realTdx.quote()));
    expect(platformOf(quote)).toMatch(/^[0-9a-f]{64}$/);
  });
});
