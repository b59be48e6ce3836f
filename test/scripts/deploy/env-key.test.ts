import { describe, expect, it } from 'vitest';
import { verifyEnvKey } from '../../../scripts/deploy/env-key.ts';
import { codeOf } from '../../support/throws.ts';

// The example of the dstack SDK's own documentation.
const key = {
  publicKey: 'e33a1832c6562067ff8f844a61e51ad051f1180b66ec2551fb0251735f3ee90a',
  signature:
    '8542c49081fbf4e03f62034f13fbf70630bdf256a53032e38465a27c36fd6bed7a5e7111652004aef37f7fd92fbfc1285212c4ae6a6154203a48f5e16cad2cef00',
};
const expected = {
  appId: '00'.repeat(20),
  kmsSigner: '0217610d74cbd39b6143842c6d8bc310d79da1d82cc9d17f8876376221eda0c38f',
  provisioned: key.publicKey,
};

describe('verifyEnvKey', () => {
  it('accepts the key that this KMS signed for this app', () => {
    verifyEnvKey(key, expected);
    verifyEnvKey(key, { ...expected, provisioned: null });
  });

  it.each([
    ['another app', key, { ...expected, appId: '01'.repeat(20) }],
    ['another KMS', key, { ...expected, kmsSigner: `03${expected.kmsSigner.slice(2)}` }],
    ['another key at provisioning', key, { ...expected, provisioned: '00'.repeat(32) }],
    ['another key', { ...key, publicKey: '00'.repeat(32) }, { ...expected, provisioned: null }],
    ['a signature of zeros', { ...key, signature: '00'.repeat(65) }, expected],
    ['a signature of one bit more', { ...key, signature: key.signature.replace(/^85/, '84') }, expected],
    ['a signer that is no point', key, { ...expected, kmsSigner: `02${'f'.repeat(64)}` }],
  ])('refuses %s', (_, given, wanted) => {
    expect(codeOf(() => verifyEnvKey(given, wanted))).toBe('deploy_env_key_invalid');
  });
});
