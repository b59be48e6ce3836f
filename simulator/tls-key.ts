import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { type Identity, issueCertificate, pemChain } from './certificates.ts';
import type { Platform } from './platform.ts';
import {
  appExtensions,
  type CertForm,
  evidenceExtensions,
  type RaTlsEvidence,
  raTlsReportData,
} from './ra-tls.ts';
import { deriveHex, deriveKey } from './seed.ts';
import { ExtendedKeyUsageExtension, type Extension, SubjectAlternativeNameExtension } from './x509.ts';

const DAY_MS = 86_400_000;
const YEARS_10_MS = 3650 * DAY_MS;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

/** dstack's own CAs, which issue app certificates; not Intel's. */
export interface KmsChain {
  root: Identity;
  appCa: Identity;
}

/** "Dstack KMS CA" and the app's "Dstack App CA" below it; the root's key is the key provider's id. */
export async function createKmsChain(platform: Pick<Platform, 'seed' | 'nowMs'>): Promise<KmsChain> {
  const { seed, nowMs } = platform;
  const ca = (name: string, label: string, issuer: Identity | 'self', pathLength: number) =>
    issueCertificate({
      subject: `CN=${name}`,
      issuer,
      key: deriveKey(seed, label),
      serial: `1f${deriveHex(seed, `serial/${label}`, 15)}`,
      notBefore: new Date(nowMs - 365 * DAY_MS),
      notAfter: new Date(nowMs + YEARS_10_MS),
      role: { ca: true, pathLength },
      extensions: [],
    });
  const root = await ca('Dstack KMS CA', 'kms-root', 'self', 1);
  return { root, appCa: await ca('Dstack App CA', 'app-ca', root, 0) };
}

/** GetTlsKey's arguments, as they are on the wire. */
export interface TlsKeyArguments {
  subject: string;
  alt_names: readonly string[];
  usage_ra_tls: boolean;
  usage_server_auth: boolean;
  usage_client_auth: boolean;
  /** Seconds since the epoch. */
  not_before?: number | undefined;
  not_after?: number | undefined;
}

export interface TlsKeyContext {
  chain: KmsChain;
  appId: Buffer;
  certForm: CertForm;
  nowMs: number;
  /** Evidence over 64 bytes of report data. */
  evidence(reportData: Buffer): RaTlsEvidence;
}

function usageExtensions(args: TlsKeyArguments): Extension[] {
  const usages = [
    ...(args.usage_server_auth ? [SERVER_AUTH] : []),
    ...(args.usage_client_auth ? [CLIENT_AUTH] : []),
  ];
  return [
    ...(usages.length > 0 ? [new ExtendedKeyUsageExtension(usages)] : []),
    ...(args.alt_names.length > 0
      ? [
          new SubjectAlternativeNameExtension(
            args.alt_names.map((value) => ({ type: 'dns' as const, value })),
          ),
        ]
      : []),
  ];
}

/** A fresh P-256 key and its chain, leaf first: what GetTlsKey replies. */
export async function issueTlsKey(
  args: TlsKeyArguments,
  context: TlsKeyContext,
): Promise<{ key: string; certificate_chain: [string, string, string] }> {
  const { chain, nowMs } = context;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const leaf = await issueCertificate({
    subject: [{ CN: [args.subject] }],
    issuer: chain.appCa,
    key: privateKey,
    serial: `1f${randomBytes(15).toString('hex')}`,
    notBefore: new Date(args.not_before === undefined ? nowMs - DAY_MS : args.not_before * 1000),
    notAfter: new Date(args.not_after === undefined ? nowMs + YEARS_10_MS : args.not_after * 1000),
    role: { ca: false },
    extensions: [
      ...usageExtensions(args),
      ...appExtensions(context.appId),
      ...(args.usage_ra_tls
        ? evidenceExtensions(context.evidence(raTlsReportData(spki)), context.certForm)
        : []),
    ],
  });
  return {
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    certificate_chain: [pemChain(leaf), pemChain(chain.appCa), pemChain(chain.root)],
  };
}
