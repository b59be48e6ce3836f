import 'reflect-metadata';
import type { X509Certificate } from 'node:crypto';
import {
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate as ParsedCertificate,
  X509Crl,
} from '@peculiar/x509';
import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { Memo } from './memo.ts';

function parseCrl(der: Buffer): X509Crl {
  const crl = new X509Crl(der);
  // A critical extension narrows what a CRL speaks for (delta, indirect): such a CRL proves nothing here.
  if (crl.extensions.some((extension) => extension.critical)) throw new Error('unknown critical extension');
  return crl;
}

async function isIssuedBy(crl: X509Crl, issuer: ParsedCertificate): Promise<boolean> {
  const usages = issuer.getExtension(KeyUsagesExtension)?.usages ?? 0;
  if ((usages & KeyUsageFlags.cRLSign) === 0) return false;
  const named = Buffer.from(crl.issuerName.toArrayBuffer());
  if (!named.equals(Buffer.from(issuer.subjectName.toArrayBuffer()))) return false;
  return crl.verify({ publicKey: issuer }).catch(() => false);
}

/** What a CRL says once it is known to be its issuer's. */
interface ReadCrl {
  thisUpdate: Date;
  nextUpdateMs: number;
  revoked: ReadonlySet<bigint>;
}

const CRLS = new Memo<ReadCrl>(64);

async function readCrl(der: Buffer, issuer: X509Certificate, what: string): Promise<ReadCrl> {
  // The library parses some fields, and fails, only when they are asked for.
  try {
    const crl = parseCrl(der);
    if (!(await isIssuedBy(crl, new ParsedCertificate(issuer.raw)))) {
      const message = `${what}: not issued by ${issuer.subject.replaceAll('\n', ', ')}`;
      throw new EvaluatorError('collateral_untrusted', message);
    }
    return {
      thisUpdate: crl.thisUpdate,
      nextUpdateMs: crl.nextUpdate?.getTime() ?? Number.NaN,
      revoked: new Set(crl.entries.map((entry) => serial(entry.serialNumber))),
    };
  } catch (cause) {
    if (cause instanceof EvaluatorError) throw cause;
    throw new EvaluatorError('crl_malformed', `${what}: not a complete X.509 CRL`, { cause });
  }
}

const serial = (hex: string): bigint => BigInt(`0x${hex}`);

/**
 * The CRL is its issuer's own, is current, and lists none of `subjects`. The library does none of this: a
 * CRL of garbage passes there (spec/04).
 * @param issuer a CA whose own chain was verified.
 * @throws crl_malformed, collateral_untrusted, crl_not_yet_valid, crl_expired, certificate_revoked.
 */
export async function verifyNotRevoked(
  der: Buffer,
  issuer: X509Certificate,
  subjects: readonly X509Certificate[],
  nowMs: number,
  what: string,
): Promise<void> {
  const key = `${sha256Hex(der)} ${issuer.fingerprint256}`;
  const { thisUpdate, nextUpdateMs, revoked } = await CRLS.getAsync(key, () => readCrl(der, issuer, what));
  if (!(nowMs >= thisUpdate.getTime())) {
    throw new EvaluatorError('crl_not_yet_valid', `${what}: issued at ${thisUpdate.toISOString()}`);
  }
  if (!(nowMs <= nextUpdateMs)) {
    throw new EvaluatorError('crl_expired', `${what}: its next update is overdue`);
  }
  for (const subject of subjects) {
    if (revoked.has(serial(subject.serialNumber))) {
      throw new EvaluatorError('certificate_revoked', `${what}: revokes certificate ${subject.serialNumber}`);
    }
  }
}
