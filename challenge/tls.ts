import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const LIFE_MS = 90 * 86_400_000;
const SKEW_MS = 3_600_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A server certificate under a CA of its own; the CA's key is forgotten, so it vouches for nothing else. */
export interface ServerIdentity {
  /** Goes into the plan (`server_ca_pem`). */
  caPem: string;
  certificatePem: string;
  keyPem: string;
}

const pemText = (pem: string): string => `${pem.trim()}\n`;

/** Issues an identity for a host name or an IP address, valid from an hour ago for 90 days. */
export async function issueServerIdentity(host: string, nowMs: number): Promise<ServerIdentity> {
  const makeKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const [caKeys, keys] = [await makeKeys(), await makeKeys()];
  const validity = { notBefore: new Date(nowMs - SKEW_MS), notAfter: new Date(nowMs + LIFE_MS) };
  const ca = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=CVM Evaluator Challenge CA',
    keys: caKeys,
    signingAlgorithm: ALGORITHM,
    ...validity,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
    ],
  });
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=CVM Evaluator Challenge',
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: ALGORITHM,
    ...validity,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type: isIP(host) ? 'ip' : 'dns', value: host }]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const body = pkcs8.toString('base64').replace(/.{64}/g, '$&\n').trim();
  return {
    caPem: pemText(ca.toString('pem')),
    certificatePem: pemText(certificate.toString('pem')),
    keyPem: `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
  };
}
