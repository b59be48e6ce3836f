import type { X509Certificate } from 'node:crypto';
import { QuoteVerifier } from '@phala/dcap-qvl';
import { hasIntelSeam, isDebugTd, type TdxQuote } from '../../guest/attest/quote.ts';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { NAMES, parseChain, verifyChain } from './certificates.ts';
import { type Collateral, readTcbInfo, type TcbInfo, verifyCollateralWindow } from './collateral.ts';
import { verifyNotRevoked } from './crl.ts';
import { sgxMember } from './sgx-extension.ts';
import { type TcbStanding, withTdxModule } from './tdx-module.ts';

export interface DcapInput {
  quote: TdxQuote;
  quoteBytes: Buffer;
  collateral: Collateral;
  /** The one trusted root: Intel's, or a simulator's by an explicit choice of the caller. */
  rootDer: Buffer;
  /** Milliseconds since the epoch. */
  nowMs: number;
}

/** Each message of the library that names a cause, and our code for it; any other is a bad signature. */
const LIBRARY_CODES: readonly (readonly [RegExp, Code])[] = [
  [/^Fmspc mismatch/, 'tcb_fmspc_mismatch'],
  [/^No matching TCB level/, 'tcb_level_unmatched'],
  [/^QE ISVSVN .* below/, 'tcb_level_unmatched'],
  [/^TCB status is invalid/, 'tcb_revoked'],
  [/^QE (?:MRSIGNER|ISVPRODID|MISCSELECT|ATTRIBUTES) mismatch/, 'qe_identity_mismatch'],
  [/^Signature is invalid for tcb_info/, 'collateral_signature_invalid'],
  [/^Signature is invalid for qe_identity/, 'collateral_signature_invalid'],
  [/^Failed to decode (?:TcbInfo|QeIdentity)/, 'collateral_malformed'],
  [/^Unsupported QE Identity/, 'collateral_malformed'],
  [/^No (?:SGX|TDX) components in the TCB info/, 'collateral_malformed'],
  [/^Reserved bits in TD attributes/, 'td_attributes_invalid'],
  [/^SEPT_VE_DISABLE/, 'td_attributes_invalid'],
  [/^Invalid mr service td/, 'td_attributes_invalid'],
];

function libraryError(error: unknown, quote: TdxQuote): EvaluatorError {
  const message = error instanceof Error ? error.message : String(error);
  const debug: Code = isDebugTd(quote) ? 'td_debug' : 'qe_identity_mismatch';
  const code = message.startsWith('Debug mode')
    ? debug
    : (LIBRARY_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 'quote_signature_invalid');
  return new EvaluatorError(code, `quote: ${message}`, { cause: error });
}

interface Chains {
  pck: readonly X509Certificate[];
  pckCrlIssuer: readonly X509Certificate[];
  tcbSigning: readonly X509Certificate[];
  qeSigning: readonly X509Certificate[];
}

/** Whom the collateral itself is believed by is the challenge's own affair, and says nothing about a guest. */
async function ofCollateral<T>(field: keyof Collateral, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : 'unknown';
    throw new EvaluatorError('collateral_untrusted', `collateral: ${field}: ${problem}`, { cause });
  }
}

async function verifyChains({ quote, collateral, rootDer, nowMs }: DcapInput): Promise<Chains> {
  const read = (pem: string, names: readonly (readonly string[])[], what: string) => {
    const chain = parseChain(pem, names.length + 1, what);
    verifyChain(chain, { rootDer, names, nowMs });
    return chain;
  };
  const readOwn = (field: `${string}_issuer_chain` & keyof Collateral, name: readonly string[]) =>
    ofCollateral(field, async () => read(collateral[field], [name], field));
  return {
    pck: read(quote.certChainPem, [NAMES.pck, NAMES.pckCa], "the quote's PCK chain"),
    pckCrlIssuer: await readOwn('pck_crl_issuer_chain', NAMES.pckCa),
    tcbSigning: await readOwn('tcb_info_issuer_chain', NAMES.tcbSigning),
    qeSigning: await readOwn('qe_identity_issuer_chain', NAMES.tcbSigning),
  };
}

async function verifyRevocation(chains: Chains, { collateral, nowMs }: DcapInput): Promise<void> {
  const [leaf, ca, root] = chains.pck;
  const [crlIssuer] = chains.pckCrlIssuer;
  const signers = [...chains.tcbSigning, ...chains.qeSigning];
  if (!leaf || !ca || !root || !crlIssuer) throw new Error('a chain is shorter than it was read');
  // The CRL must speak for the very CA that issued this PCK certificate (platform or processor).
  if (crlIssuer.subject !== ca.subject || !crlIssuer.publicKey.equals(ca.publicKey)) {
    throw new EvaluatorError(
      'crl_foreign',
      "collateral: pck_crl is of another CA than the quote's PCK chain",
    );
  }
  const rootCrl = Buffer.from(collateral.root_ca_crl, 'hex');
  const pckCrl = Buffer.from(collateral.pck_crl, 'hex');
  await verifyNotRevoked(rootCrl, root, [root, ca, crlIssuer], nowMs, 'collateral: root_ca_crl');
  await ofCollateral('root_ca_crl', () =>
    verifyNotRevoked(rootCrl, root, signers, nowMs, 'of the TCB signers'),
  );
  await verifyNotRevoked(pckCrl, ca, [leaf], nowMs, 'collateral: pck_crl');
}

function verifySeam(quote: TdxQuote): void {
  if (!hasIntelSeam(quote)) {
    throw new EvaluatorError('seam_signer_invalid', "quote: the TDX module is not Intel's (mrsigner_seam)");
  }
}

function verifyByLibrary({ quote, quoteBytes, collateral, rootDer, nowMs }: DcapInput) {
  try {
    return new QuoteVerifier(rootDer).verify(quoteBytes, collateral, Math.floor(nowMs / 1000));
  } catch (error) {
    throw libraryError(error, quote);
  }
}

/** The TCB info is for the platform's provisioning enclave; that it is for its FMSPC, the library compares. */
function verifyPce({ pck: [leaf] }: Chains, { pceId }: TcbInfo): void {
  const own = leaf && sgxMember(leaf.raw, 'pceId');
  if (own?.toString('hex') !== pceId.toLowerCase()) {
    throw new EvaluatorError(
      'tcb_fmspc_mismatch',
      'quote: the TCB info is for another PCE than its platform has',
    );
  }
}

/**
 * Verifies a quote's signature chain up to `rootDer` with @phala/dcap-qvl and, before it, what that library
 * leaves out: chains, CA flags, names, CRLs, dates, the time itself, the TDX module's signer (spec/04) and, after it,
 * the PCE and the TDX module's own TCB.
 * The TCB status is returned, not judged.
 * @throws clock_invalid and the codes of collateral, certificates, CRLs and quote listed in docs/verification.md.
 */
export async function verifyDcap(input: DcapInput): Promise<TcbStanding> {
  const { quote, collateral, nowMs } = input;
  // NaN would pass every date comparison of the library.
  if (!Number.isSafeInteger(nowMs) || nowMs <= 0) {
    throw new EvaluatorError(
      'clock_invalid',
      'the time of verification must be whole milliseconds since 1970',
    );
  }
  const chains = await verifyChains(input);
  verifyCollateralWindow(collateral, nowMs);
  await verifyRevocation(chains, input);
  verifySeam(quote);
  const { status: tcbStatus, advisory_ids: advisoryIds } = verifyByLibrary(input);
  // Only now is the TCB info known to be Intel's.
  const tcbInfo = readTcbInfo(collateral);
  verifyPce(chains, tcbInfo);
  return withTdxModule(quote, tcbInfo, { tcbStatus, advisoryIds });
}
