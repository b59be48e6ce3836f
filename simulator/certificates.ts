import { createPublicKey, type KeyObject, webcrypto } from 'node:crypto';
import * as x509 from './x509.ts';

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
x509.cryptoProvider.set(webcrypto);

/** A certificate together with the private key of its subject. */
export interface Identity {
  key: KeyObject;
  certificate: x509.X509Certificate;
}

export interface CertificateRequest {
  subject: string | x509.JsonName;
  /** Who signs; `self` for a root. */
  issuer: Identity | 'self';
  key: KeyObject;
  serial: string;
  notBefore: Date;
  notAfter: Date;
  role: { ca: true; pathLength: number } | { ca: false };
  extensions: x509.Extension[];
}

function spki(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' });
}

function signingKey(key: KeyObject) {
  return webcrypto.subtle.importKey('pkcs8', key.export({ format: 'der', type: 'pkcs8' }), ECDSA, false, [
    'sign',
  ]);
}

/** Issues one P-256 certificate with the extensions that every Intel certificate has, plus those asked for. */
export async function issueCertificate(request: CertificateRequest): Promise<Identity> {
  const { issuer, key, role } = request;
  const publicKey = spki(key);
  const issuerKey = issuer === 'self' ? key : issuer.key;
  const usages = role.ca
    ? x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign
    : x509.KeyUsageFlags.digitalSignature;
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: request.serial,
    subject: request.subject,
    issuer: issuer === 'self' ? request.subject : issuer.certificate.subject,
    notBefore: request.notBefore,
    notAfter: request.notAfter,
    signingAlgorithm: ECDSA,
    publicKey,
    signingKey: await signingKey(issuerKey),
    extensions: [
      await x509.AuthorityKeyIdentifierExtension.create(spki(issuerKey)),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      new x509.KeyUsagesExtension(usages, true),
      new x509.BasicConstraintsExtension(role.ca, role.ca ? role.pathLength : undefined, true),
      ...request.extensions,
    ],
  });
  return { key, certificate };
}

export interface CrlRequest {
  issuer: Identity;
  thisUpdate: Date;
  nextUpdate: Date;
  /** Serial numbers in hex. */
  revoked: string[];
}

/** Issues a signed CRL, DER. */
export async function issueCrl(request: CrlRequest): Promise<Buffer> {
  const crl = await x509.X509CrlGenerator.create({
    issuer: request.issuer.certificate.subject,
    thisUpdate: request.thisUpdate,
    nextUpdate: request.nextUpdate,
    entries: request.revoked.map((serialNumber) => ({ serialNumber, revocationDate: request.thisUpdate })),
    signingAlgorithm: ECDSA,
    signingKey: await signingKey(request.issuer.key),
    extensions: [await x509.AuthorityKeyIdentifierExtension.create(spki(request.issuer.key))],
  });
  return Buffer.from(crl.rawData);
}

/** Certificates as one PEM text, in the order given, each ending in a newline. */
export function pemChain(...chain: Identity[]): string {
  return chain.map(({ certificate }) => `${certificate.toString('pem')}\n`).join('');
}
