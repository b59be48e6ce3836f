import { EvaluatorError } from '../errors.ts';
import { ByteReader } from './reader.ts';

/** Intel's QE vendor id: the only one whose quotes verify under Intel's chain. */
const INTEL_QE_VENDOR_ID = '939a7233f79c4ca9940a0db3957f0607';
/** 64 KiB: as much as a RESULT carries; genuine quotes are about 5 KiB. */
export const MAX_QUOTE_BYTES = 64 * 1024;

const HEADER_BYTES = 48;
const KEY_TYPE_ECDSA_P256 = 2;
const TEE_TYPE_TDX = 0x81;
const CERT_QE_REPORT = 6;
const CERT_PCK_CHAIN = 5;
const QE_AUTH_BYTES = 32;
const TD10_BYTES = 584;
const TD15_BYTES = 648;
/** v5 body types and their only size. */
const V5_BODY_BYTES: Readonly<Record<number, number>> = { 2: TD10_BYTES, 3: TD15_BYTES };

/** A TDX quote, parsed but not verified. Registers and attributes are lower-case hex, in quote byte order. */
export interface TdxQuote {
  version: 4 | 5;
  qeVendorId: string;
  teeTcbSvn: string;
  mrSeam: string;
  mrSignerSeam: string;
  seamAttributes: string;
  tdAttributes: string;
  xfam: string;
  mrtd: string;
  mrConfigId: string;
  mrOwner: string;
  mrOwnerConfig: string;
  rtmr: readonly [string, string, string, string];
  /** 64 bytes. */
  reportData: Buffer;
  /** TD 1.5 bodies only: the service TD bound to this one; all zero when there is none. */
  mrServiceTd: string | null;
  /** Header and body: what `signature` covers. */
  signedBytes: Buffer;
  /** r ‖ s, 64 bytes. */
  signature: Buffer;
  /** x ‖ y, 64 bytes. */
  attestationKey: Buffer;
  /** 384 bytes. */
  qeReport: Buffer;
  qeReportSignature: Buffer;
  qeAuthData: Buffer;
  certChainPem: string;
  /** Bytes that the quote's own lengths account for. */
  declaredLength: number;
  /** Whatever follows them: for the caller to judge, see `cutToDeclaredLength`. */
  trailing: Buffer;
}

function malformed(problem: string): EvaluatorError {
  return new EvaluatorError('quote_malformed', `quote: ${problem}`);
}

function expectField(name: string, actual: number | string, expected: number | string): void {
  if (actual !== expected) throw malformed(`${name} is ${actual}, expected ${expected}`);
}

function readHeader(header: ByteReader): { version: 4 | 5; qeVendorId: string } {
  const version = header.u16('version');
  if (version !== 4 && version !== 5) throw malformed(`version is ${version}, expected 4 or 5`);
  expectField('attestation key type', header.u16('attestation key type'), KEY_TYPE_ECDSA_P256);
  expectField('TEE type', header.u32('TEE type'), TEE_TYPE_TDX);
  header.bytes(4, 'QE and PCE SVN');
  const qeVendorId = header.hex(16, 'QE vendor id');
  expectField('QE vendor id', qeVendorId, INTEL_QE_VENDOR_ID);
  header.bytes(20, 'user data');
  return { version, qeVendorId };
}

function readBody(body: ByteReader) {
  const register = (name: string) => body.hex(48, name);
  return {
    teeTcbSvn: body.hex(16, 'tee_tcb_svn'),
    mrSeam: register('mr_seam'),
    mrSignerSeam: register('mrsigner_seam'),
    seamAttributes: body.hex(8, 'seam_attributes'),
    tdAttributes: body.hex(8, 'td_attributes'),
    xfam: body.hex(8, 'xfam'),
    mrtd: register('mrtd'),
    mrConfigId: register('mr_config_id'),
    mrOwner: register('mr_owner'),
    mrOwnerConfig: register('mr_owner_config'),
    rtmr: [register('rtmr0'), register('rtmr1'), register('rtmr2'), register('rtmr3')] as const,
    reportData: body.bytes(64, 'report_data'),
  };
}

function readBodyLength(reader: ByteReader, version: 4 | 5): number {
  if (version === 4) return TD10_BYTES;
  const type = reader.u16('body type');
  const size = reader.u32('body size');
  const expected = V5_BODY_BYTES[type];
  if (expected === undefined) throw malformed(`body type is ${type}, expected 2 (TD 1.0) or 3 (TD 1.5)`);
  expectField('body size', size, expected);
  return size;
}

/** The PEM chain as text; makers end it with at most one NUL. */
function readPem(bytes: Buffer): string {
  const text = bytes.toString('latin1').replace(/\0$/, '');
  if (!/^-----BEGIN CERTIFICATE-----[\x20-\x7e\r\n]+$/.test(text)) {
    throw malformed('the PCK certificate chain is not PEM text');
  }
  return text;
}

function readAuthData(auth: ByteReader) {
  const signature = auth.bytes(64, 'signature');
  const attestationKey = auth.bytes(64, 'attestation key');
  expectField('certification data type', auth.u16('certification data type'), CERT_QE_REPORT);
  const certification = auth.sub(auth.u32('certification data size'), 'certification data');
  auth.end('signature data');

  const qeReport = certification.bytes(384, 'QE report');
  const qeReportSignature = certification.bytes(64, 'QE report signature');
  expectField('QE authentication data size', certification.u16('QE authentication data size'), QE_AUTH_BYTES);
  const qeAuthData = certification.bytes(QE_AUTH_BYTES, 'QE authentication data');
  expectField('QE certification type', certification.u16('QE certification type'), CERT_PCK_CHAIN);
  const chain = certification.bytes(certification.u32('PCK chain size'), 'PCK chain');
  certification.end('certification data');
  return { signature, attestationKey, qeReport, qeReportSignature, qeAuthData, certChainPem: readPem(chain) };
}

/**
 * Parses a v4 or v5 TDX quote (spec/04). Every length must add up; nothing is verified cryptographically.
 * @throws quote_malformed.
 */
export function parseQuote(bytes: Buffer): TdxQuote {
  if (bytes.length > MAX_QUOTE_BYTES) {
    throw malformed(`${bytes.length} bytes, at most ${MAX_QUOTE_BYTES} are read`);
  }
  const reader = new ByteReader(Buffer.from(bytes), 'quote', 'quote_malformed');
  const { version, qeVendorId } = readHeader(reader.sub(HEADER_BYTES, 'header'));
  const bodyReader = reader.sub(readBodyLength(reader, version), 'body');
  const body = readBody(bodyReader);
  let mrServiceTd: string | null = null;
  if (bodyReader.remaining > 0) {
    bodyReader.bytes(16, 'tee_tcb_svn_2');
    mrServiceTd = bodyReader.hex(48, 'mr_service_td');
  }
  bodyReader.end('body');
  const signedBytes = reader.consumed();
  const auth = readAuthData(reader.sub(reader.u32('signature data size'), 'signature data'));
  const declaredLength = reader.consumed().length;
  const trailing = reader.bytes(reader.remaining, 'trailing bytes');
  return { version, qeVendorId, ...body, mrServiceTd, signedBytes, ...auth, declaredLength, trailing };
}

/**
 * The quote without the zero padding that the guest agent leaves behind it (spec/01, raw dstack → wire).
 * @throws quote_malformed, also when anything but zero bytes follows.
 */
export function cutToDeclaredLength(bytes: Buffer): Buffer {
  const { declaredLength, trailing } = parseQuote(bytes);
  if (trailing.some((byte) => byte !== 0)) {
    throw malformed(`bytes other than zero follow its declared length of ${declaredLength}`);
  }
  return bytes.subarray(0, declaredLength);
}

/** True when any debug bit (byte 0 of the TD attributes) is set: such a TD's memory is open to its host. */
export function isDebugTd(quote: Pick<TdxQuote, 'tdAttributes'>): boolean {
  return quote.tdAttributes.slice(0, 2) !== '00';
}

/** True when the TDX module is Intel's own: its signer and attributes are zero. */
export function hasIntelSeam(quote: Pick<TdxQuote, 'mrSignerSeam' | 'seamAttributes'>): boolean {
  return /^0+$/.test(quote.mrSignerSeam + quote.seamAttributes);
}
