import { sign } from 'node:crypto';
import { pemChain } from './certificates.ts';
import type { Pki } from './pki.ts';
import type { PlatformTcb } from './sgx-extension.ts';

const DAY_MS = 86_400_000;
const TCB_DATE = '2025-05-14T00:00:00Z';

/** Collateral in dcap-qvl's JSON shape; binary members are lower-case hex, chains are PEM texts. */
export interface Collateral {
  pck_crl_issuer_chain: string;
  root_ca_crl: string;
  pck_crl: string;
  tcb_info_issuer_chain: string;
  /** The exact signed bytes: JSON of Intel's TCB info, version 3, id TDX. */
  tcb_info: string;
  /** r ‖ s, 64 bytes. */
  tcb_info_signature: string;
  qe_identity_issuer_chain: string;
  /** The exact signed bytes: JSON of Intel's enclave identity, version 2, id TD_QE. */
  qe_identity: string;
  qe_identity_signature: string;
}

/** What the quoting enclave says of itself, and the identity therefore expects. */
export interface QuotingEnclave {
  /** 32 bytes each, hex. */
  mrEnclave: string;
  mrSigner: string;
  isvProdId: number;
  isvSvn: number;
}

export interface CollateralOptions {
  pki: Pki;
  nowMs: number;
  tcb: PlatformTcb;
  /** 16 bytes: the TDX module's SVN, its major version, the SEAM loader's SVN, zeros. */
  teeTcbSvn: Buffer;
  qe: QuotingEnclave;
  validity: 'current' | 'expired';
  tcbStatus: 'UpToDate' | 'OutOfDate';
}

function window(nowMs: number, validity: 'current' | 'expired'): { issueDate: string; nextUpdate: string } {
  const issued = validity === 'current' ? nowMs - DAY_MS : nowMs - 60 * DAY_MS;
  const iso = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  return { issueDate: iso(issued), nextUpdate: iso(issued + 30 * DAY_MS) };
}

function tcbInfo(options: CollateralOptions): unknown {
  const { tcb, teeTcbSvn, tcbStatus } = options;
  const svns = (bytes: Buffer) => [...bytes].map((svn) => ({ svn }));
  const level = (pcesvn: number, status: string, advisoryIDs: string[]) => ({
    tcb: { sgxtcbcomponents: svns(tcb.cpuSvn), pcesvn, tdxtcbcomponents: svns(teeTcbSvn) },
    tcbDate: TCB_DATE,
    tcbStatus: status,
    advisoryIDs,
  });
  const module = {
    mrsigner: '0'.repeat(96),
    attributes: '0'.repeat(16),
    attributesMask: 'F'.repeat(16),
  };
  return {
    id: 'TDX',
    version: 3,
    ...window(options.nowMs, options.validity),
    fmspc: tcb.fmspc.toString('hex').toUpperCase(),
    pceId: tcb.pceId.toString('hex').toUpperCase(),
    tcbType: 0,
    tcbEvaluationDataNumber: 17,
    tdxModule: module,
    tdxModuleIdentities: [
      {
        id: `TDX_${(teeTcbSvn[1] ?? 0).toString(16).padStart(2, '0')}`,
        ...module,
        tcbLevels: [{ tcb: { isvsvn: teeTcbSvn[0] ?? 0 }, tcbDate: TCB_DATE, tcbStatus: 'UpToDate' }],
      },
    ],
    // The newest level asks for one PCE SVN more than an outdated platform has.
    tcbLevels: [
      level(tcbStatus === 'UpToDate' ? tcb.pceSvn : tcb.pceSvn + 1, 'UpToDate', []),
      level(tcb.pceSvn, 'OutOfDate', ['INTEL-SA-SIMULATED']),
    ],
  };
}

function qeIdentity(options: CollateralOptions): unknown {
  return {
    id: 'TD_QE',
    version: 2,
    ...window(options.nowMs, options.validity),
    tcbEvaluationDataNumber: 17,
    miscselect: '00000000',
    miscselectMask: 'FFFFFFFF',
    attributes: '11000000000000000000000000000000',
    attributesMask: 'FBFFFFFFFFFFFFFF0000000000000000',
    mrsigner: options.qe.mrSigner.toUpperCase(),
    isvprodid: options.qe.isvProdId,
    tcbLevels: [{ tcb: { isvsvn: options.qe.isvSvn }, tcbDate: TCB_DATE, tcbStatus: 'UpToDate' }],
  };
}

/** Signs a document as Intel's PCS does: ECDSA over its exact bytes, r ‖ s in hex. */
export function signDocument(pki: Pick<Pki, 'tcbSigning'>, text: string): string {
  const signature = sign('sha256', Buffer.from(text), { key: pki.tcbSigning.key, dsaEncoding: 'ieee-p1363' });
  return signature.toString('hex');
}

/** Everything a verifier needs beside the quote and the root. */
export function createCollateral(options: CollateralOptions): Collateral {
  const { pki } = options;
  const tcb_info = JSON.stringify(tcbInfo(options));
  const qe_identity = JSON.stringify(qeIdentity(options));
  const tcbChain = pemChain(pki.tcbSigning, pki.root);
  return {
    pck_crl_issuer_chain: pemChain(pki.platformCa, pki.root),
    root_ca_crl: pki.rootCrl.toString('hex'),
    pck_crl: pki.platformCrl.toString('hex'),
    tcb_info_issuer_chain: tcbChain,
    tcb_info,
    tcb_info_signature: signDocument(pki, tcb_info),
    qe_identity_issuer_chain: tcbChain,
    qe_identity,
    qe_identity_signature: signDocument(pki, qe_identity),
  };
}
