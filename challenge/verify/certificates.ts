import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { KeyUsageFlags, KeyUsagesExtension, X509Certificate as ParsedCertificate } from '@peculiar/x509';
import { EvaluatorError } from '../../guest/errors.ts';
import { Memo } from './memo.ts';

const BLOCK = /-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n/g;
/** Names that Intel gives its certificates; the TCB-signing one differs from the others in nothing else. */
export const NAMES = {
  pck: ['Intel SGX PCK Certificate'],
  pckCa: ['Intel SGX PCK Platform CA', 'Intel SGX PCK Processor CA'],
  tcbSigning: ['Intel SGX TCB Signing'],
} as const;

/** Chains as they were parsed, and pairs of which one issued the other. */
const CHAINS = new Memo<readonly X509Certificate[]>(128);
const ISSUED = new Memo<object>(256);

function encodeBlock(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/**
 * Reads a PEM chain, leaf first. Nothing but certificate blocks may be in it, and each block's text must be
 * the only one for its bytes, so that nobody can vary an accepted chain.
 * @throws certificate_malformed.
 */
export function parseChain(pem: string, count: number, what: string): readonly X509Certificate[] {
  return CHAINS.get(`${count} ${pem}`, () => parseBlocks(pem, count, what));
}

function parseBlocks(pem: string, count: number, what: string): readonly X509Certificate[] {
  const blocks = pem.match(BLOCK) ?? [];
  if (blocks.length !== count || blocks.join('') !== pem) {
    throw new EvaluatorError(
      'certificate_malformed',
      `${what}: must be ${count} PEM certificates and no more`,
    );
  }
  return blocks.map((block, index) => {
    try {
      const certificate = new X509Certificate(block);
      if (encodeBlock(certificate.raw) !== block) throw new Error('not the PEM of its bytes');
      return certificate;
    } catch (cause) {
      throw new EvaluatorError('certificate_malformed', `${what}: certificate ${index} is not X.509`, {
        cause,
      });
    }
  });
}

function commonName(certificate: X509Certificate): string {
  return /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? '';
}

function maySignCertificates(certificate: X509Certificate): boolean {
  const usages = new ParsedCertificate(certificate.raw).getExtension(KeyUsagesExtension)?.usages ?? 0;
  return certificate.ca && (usages & KeyUsageFlags.keyCertSign) !== 0;
}

function verifyValidity(certificate: X509Certificate, nowMs: number): void {
  if (nowMs >= certificate.validFromDate.getTime() && nowMs <= certificate.validToDate.getTime()) return;
  throw new EvaluatorError(
    'certificate_outside_validity',
    `certificate "${commonName(certificate)}" is valid from ${certificate.validFrom} to ${certificate.validTo}`,
  );
}

function verifyIssued(child: X509Certificate, parent: X509Certificate): void {
  ISSUED.get(`${child.fingerprint256} ${parent.fingerprint256}`, () => {
    verifyIssuedAnew(child, parent);
    return child;
  });
}

function verifyIssuedAnew(child: X509Certificate, parent: X509Certificate): void {
  if (!maySignCertificates(parent)) {
    throw new EvaluatorError(
      'certificate_not_ca',
      `certificate "${commonName(parent)}" may not issue others`,
    );
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = parent.publicKey;
  const isP256 = type === 'ec' && details?.namedCurve === 'prime256v1';
  if (!isP256 || !child.checkIssued(parent) || !child.verify(parent.publicKey)) {
    throw new EvaluatorError(
      'certificate_signature_invalid',
      `certificate "${commonName(child)}" was not issued by "${commonName(parent)}"`,
    );
  }
}

export interface ChainExpectation {
  rootDer: Uint8Array;
  /** Allowed common names, leaf first, for all but the root. */
  names: readonly (readonly string[])[];
  nowMs: number;
}

/**
 * A chain, leaf first, ends in exactly the trusted root; everything above the leaf is a CA that may sign
 * certificates; names, signatures and dates hold.
 * @throws root_not_trusted, certificate_name_mismatch, certificate_not_ca, certificate_signature_invalid,
 *   certificate_outside_validity.
 */
export function verifyChain(chain: readonly X509Certificate[], expected: ChainExpectation): void {
  const root = chain.at(-1);
  if (!root?.raw.equals(expected.rootDer)) {
    throw new EvaluatorError('root_not_trusted', 'certificate chain: does not end in the trusted root');
  }
  chain.forEach((certificate, index) => {
    const allowed = expected.names[index];
    if (allowed && !allowed.includes(commonName(certificate))) {
      throw new EvaluatorError(
        'certificate_name_mismatch',
        `certificate ${index} is "${commonName(certificate)}", expected ${allowed.join(' or ')}`,
      );
    }
    verifyIssued(certificate, chain[index + 1] ?? certificate);
    verifyValidity(certificate, expected.nowMs);
  });
}
