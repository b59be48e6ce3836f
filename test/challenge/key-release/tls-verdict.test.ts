import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type JudgedSocket, verifyConnection } from '../../../challenge/key-release/tls-verdict.ts';
import { livePlatform } from '../../support/key-challenge.ts';
import { keyPair } from '../../support/key-client.ts';
import { codeOf } from '../../support/throws.ts';

let certificate: X509Certificate;
beforeAll(async () => {
  const window = { issued_at_ms: Date.now(), expires_at_ms: Date.now() + 60_000 };
  certificate = new X509Certificate((await keyPair(await livePlatform(), window)).cert);
});

function socket(overrides: Partial<JudgedSocket>): JudgedSocket {
  return {
    authorized: true,
    authorizationError: undefined as never,
    isSessionReused: () => false,
    getPeerX509Certificate: () => certificate,
    ...overrides,
  };
}

it('a whole handshake with a good certificate passes', () => {
  expect(verifyConnection(socket({}))).toBe(certificate);
});

it('a resumed session does not, whatever it was before', () => {
  expect(codeOf(() => verifyConnection(socket({ isSessionReused: () => true })))).toBe('tls_session_reused');
});

it.each([
  ['CERT_HAS_EXPIRED', 'client_certificate_expired'],
  ['CERT_NOT_YET_VALID', 'client_certificate_not_yet_valid'],
  ['INVALID_PURPOSE', 'client_certificate_purpose'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'client_certificate_untrusted'],
  ['a verdict of a later OpenSSL', 'client_certificate_untrusted'],
])('%s is %s', (verdict, code) => {
  const refused = socket({ authorized: false, authorizationError: verdict as never });
  expect(codeOf(() => verifyConnection(refused))).toBe(code);
});

it('no certificate is missing, not untrusted', () => {
  const none = socket({ authorized: false, getPeerX509Certificate: () => undefined });
  expect(codeOf(() => verifyConnection(none))).toBe('client_certificate_missing');
});
