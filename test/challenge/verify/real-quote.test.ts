import { constants } from '@phala/dcap-qvl';
import { describe, expect, it } from 'vitest';
import { NAMES, parseChain, verifyChain } from '../../../challenge/verify/certificates.ts';
import { cutToDeclaredLength, parseQuote } from '../../../guest/attest/quote.ts';
import { evidenceOf, outcomeOf } from '../../support/evidence.ts';
import { realTdx } from '../../support/real-tdx.ts';
import { NOW_MS, testPlatform } from '../../support/valid-result.ts';

describe.skipIf(realTdx.absent)(`a genuine quote (${realTdx.why})`, () => {
  const rootDer = constants.TRUSTED_ROOT_CA_DER;

  it("has a PCK chain that holds under Intel's root, by Intel's names", () => {
    const { certChainPem } = parseQuote(realTdx.quote());
    const chain = parseChain(certChainPem, 3, 'PCK chain');
    verifyChain(chain, { rootDer, names: [NAMES.pck, NAMES.pckCa], nowMs: NOW_MS });
  });

  it('is refused for its padding, and under a simulator', async () => {
    const platform = await testPlatform();
    const quoteBytes = realTdx.quote();
    expect(await outcomeOf(evidenceOf(platform, { quoteBytes }))).toBe('quote_shape: quote_trailing_bytes');
    const cut = cutToDeclaredLength(quoteBytes);
    expect(await outcomeOf(evidenceOf(platform, { quoteBytes: cut }))).toBe('quote_chain: root_not_trusted');
    const ownRoot = evidenceOf(platform, { quoteBytes: cut, rootDer });
    expect(await outcomeOf(ownRoot)).toBe('quote_chain: collateral_untrusted');
  });
});
