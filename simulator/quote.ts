import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { QuotingEnclave } from './collateral.ts';

const QE_VENDOR = Buffer.from('939a7233f79c4ca9940a0db3957f0607', 'hex');
const CERT_TYPE_PCK_CHAIN = 5;
const CERT_TYPE_QE_REPORT = 6;

/** The fields of a TD report that the simulator chooses; hex of their fixed lengths. */
export interface TdBody {
  teeTcbSvn: Buffer;
  mrSeam: string;
  tdAttributes: string;
  xfam: string;
  mrtd: string;
  mrConfigId: string;
  rtmrs: readonly [string, string, string, string];
}

export interface QuoteSigner {
  /** Signs the quote. */
  attestationKey: KeyObject;
  /** Signs the quoting enclave's report, which vouches for the attestation key. */
  pckKey: KeyObject;
  /** PEM, leaf first, root last. */
  pckChain: string;
  qe: QuotingEnclave;
  /** 16 bytes. */
  cpuSvn: Buffer;
}

/** Which layout: version 4, or version 5 with a TD 1.0 (584 bytes) or TD 1.5 (648 bytes) body. */
export type QuoteLayout = { version: 4 } | { version: 5; body: 'td10' | 'td15' };

const u16 = (n: number) => Buffer.from([n & 255, n >> 8]);
function u32(n: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(n);
  return bytes;
}
const hex = (value: string) => Buffer.from(value, 'hex');
const ecdsa = (key: KeyObject, data: Buffer) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' });

function tdReport10(body: TdBody, reportData: Buffer): Buffer {
  return Buffer.concat([
    body.teeTcbSvn,
    hex(body.mrSeam),
    Buffer.alloc(48), // mrsigner_seam: zero for Intel's own module
    Buffer.alloc(8), // seam_attributes
    hex(body.tdAttributes),
    hex(body.xfam),
    hex(body.mrtd),
    hex(body.mrConfigId),
    Buffer.alloc(48), // mr_owner
    Buffer.alloc(48), // mr_owner_config
    ...body.rtmrs.map(hex),
    reportData,
  ]);
}

function tdReport15(body: TdBody, reportData: Buffer): Buffer {
  // tee_tcb_svn_2 is the same module's; mr_servicetd is zero: no migration TD is bound.
  return Buffer.concat([tdReport10(body, reportData), body.teeTcbSvn, Buffer.alloc(48)]);
}

function header(version: number): Buffer {
  return Buffer.concat([u16(version), u16(2), u32(0x81), u16(0), u16(0), QE_VENDOR, Buffer.alloc(20)]);
}

function framedBody(body: TdBody, reportData: Buffer, layout: QuoteLayout): Buffer {
  if (layout.version === 4) return tdReport10(body, reportData);
  const report = layout.body === 'td10' ? tdReport10(body, reportData) : tdReport15(body, reportData);
  return Buffer.concat([u16(layout.body === 'td10' ? 2 : 3), u32(report.length), report]);
}

function qeReport(signer: QuoteSigner, reportData: Buffer): Buffer {
  return Buffer.concat([
    signer.cpuSvn,
    Buffer.alloc(32), // miscselect, reserved
    hex('1500000000000000e700000000000000'), // attributes: initialised, 64 bit, provisioning key, no debug
    hex(signer.qe.mrEnclave),
    Buffer.alloc(32),
    hex(signer.qe.mrSigner),
    Buffer.alloc(96),
    u16(signer.qe.isvProdId),
    u16(signer.qe.isvSvn),
    Buffer.alloc(60),
    reportData,
    Buffer.alloc(32),
  ]);
}

/** The raw X ‖ Y of a P-256 key, 64 bytes. */
function rawPublicKey(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-64);
}

/** A TDX quote over `reportData` (64 bytes) with real signatures from the attestation key up to the PCK. */
export function encodeQuote(
  body: TdBody,
  reportData: Buffer,
  signer: QuoteSigner,
  layout: QuoteLayout,
): Buffer {
  const signed = Buffer.concat([header(layout.version), framedBody(body, reportData, layout)]);
  const attestationKey = rawPublicKey(signer.attestationKey);
  const qeAuthData = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
  const report = qeReport(signer, createHash('sha256').update(attestationKey).update(qeAuthData).digest());
  const chain = Buffer.from(signer.pckChain);
  const qeCertification = Buffer.concat([
    report,
    ecdsa(signer.pckKey, report),
    u16(qeAuthData.length),
    qeAuthData,
    u16(CERT_TYPE_PCK_CHAIN),
    u32(chain.length),
    chain,
  ]);
  const authentication = Buffer.concat([
    ecdsa(signer.attestationKey, signed),
    attestationKey,
    u16(CERT_TYPE_QE_REPORT),
    u32(qeCertification.length),
    qeCertification,
  ]);
  return Buffer.concat([signed, u32(authentication.length), authentication]);
}
