import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { readClientCertificate } from '../../../challenge/key-release/client-certificate.ts';
import { certificateExtensions, valuesOf } from '../../../challenge/verify/x509-der.ts';
import { RA_TLS_OIDS } from '../../../simulator/ra-tls.ts';
import { livePlatform } from '../../support/key-challenge.ts';
import { keyPair } from '../../support/key-client.ts';

const window = { issued_at_ms: Date.now(), expires_at_ms: Date.now() + 60_000 };

it('is the one of the connection, not one that hides inside its quote', async () => {
  const platform = await livePlatform();
  const { cert, spkiDigest } = await keyPair(platform, window);
  const certificate = new X509Certificate(cert);
  // What makes the difference: Node itself takes the PEM inside a quote for the certificate.
  expect(new X509Certificate(certificate.raw).subject).toMatch(/PCK/);
  const read = readClientCertificate(certificate);
  expect(read.spkiDigest).toBe(spkiDigest);
  expect(read.evidence).toMatchObject({ form: 'versioned', appId: platform.appId.toString('hex') });
});

it('has its extensions read from its DER', async () => {
  const { cert } = await keyPair(await livePlatform(), window, { form: 'quote-and-log' });
  const extensions = certificateExtensions(new X509Certificate(cert).raw);
  const found = Object.entries(RA_TLS_OIDS).filter(([, oid]) => valuesOf(extensions, oid).length > 0);
  expect(found.map(([name]) => name)).toEqual(['quote', 'eventLog', 'appId', 'usage']);
});
