import { type Identity, issueCertificate, issueCrl } from './certificates.ts';
import { deriveHex, deriveKey } from './seed.ts';
import { type PlatformTcb, sgxExtension } from './sgx-extension.ts';
import { CRLDistributionPointsExtension } from './x509.ts';

const DAY_MS = 86_400_000;
const INTEL = 'O=Intel Corporation, L=Santa Clara, ST=CA, C=US';

/** Names are Intel's where a verifier reads them; the root's alone says what this is. */
export const SUBJECTS = {
  root: 'CN=Simulated SGX Root CA (CVM Evaluator), O=CVM Evaluator Simulator',
  platformCa: `CN=Intel SGX PCK Platform CA, ${INTEL}`,
  processorCa: `CN=Intel SGX PCK Processor CA, ${INTEL}`,
  pck: `CN=Intel SGX PCK Certificate, ${INTEL}`,
  tcbSigning: `CN=Intel SGX TCB Signing, ${INTEL}`,
} as const;

/** A mock Intel: the certificates that collateral and quotes chain to, with their private keys, and the CRLs. */
export interface Pki {
  root: Identity;
  platformCa: Identity;
  processorCa: Identity;
  /** The platform's PCK leaf; it signs the quoting enclave's report. */
  pck: Identity;
  /** Signs TCB info and QE identity. */
  tcbSigning: Identity;
  /** DER. */
  rootCrl: Buffer;
  /** DER, of the Platform CA, which issued the PCK leaf. */
  platformCrl: Buffer;
  /** DER, of the Processor CA. */
  processorCrl: Buffer;
}

export interface PkiOptions {
  seed: Uint8Array;
  nowMs: number;
  tcb: PlatformTcb;
  pckState: 'good' | 'revoked';
  /** Where the root says that its CRL lies. */
  rootCrlUrl: string;
}

/** Makes the whole PKI: keys and serial numbers from the seed, validity around `nowMs`. */
export async function createPki(options: PkiOptions): Promise<Pki> {
  const { seed, nowMs } = options;
  // X.509 times have whole seconds.
  const day = (n: number) => new Date(Math.floor((nowMs + n * DAY_MS) / 1000) * 1000);
  const crlAt = new CRLDistributionPointsExtension([options.rootCrlUrl]);
  const issue = (
    name: keyof typeof SUBJECTS,
    issuer: Identity | 'self',
    role: { ca: true; pathLength: number } | { ca: false },
    extensions = [crlAt] as Parameters<typeof issueCertificate>[0]['extensions'],
  ) =>
    issueCertificate({
      subject: SUBJECTS[name],
      issuer,
      key: deriveKey(seed, name),
      // First byte 0x01–0x7f: a positive INTEGER without padding (RFC 5280, 4.1.2.2).
      serial: `1f${deriveHex(seed, `serial/${name}`, 15)}`,
      notBefore: day(-365),
      notAfter: day(7 * 365),
      role,
      extensions,
    });

  const root = await issue('root', 'self', { ca: true, pathLength: 1 });
  const platformCa = await issue('platformCa', root, { ca: true, pathLength: 0 });
  const processorCa = await issue('processorCa', root, { ca: true, pathLength: 0 });
  const tcbSigning = await issue('tcbSigning', root, { ca: false });
  const pck = await issue('pck', platformCa, { ca: false }, [sgxExtension(options.tcb)]);
  const crl = (issuer: Identity, revoked: string[]) =>
    issueCrl({ issuer, thisUpdate: day(-1), nextUpdate: day(29), revoked });
  return {
    root,
    platformCa,
    processorCa,
    pck,
    tcbSigning,
    rootCrl: await crl(root, []),
    platformCrl: await crl(platformCa, options.pckState === 'revoked' ? [pck.certificate.serialNumber] : []),
    processorCrl: await crl(processorCa, []),
  };
}
