import { enumerated, integer, octetString, oid, sequence } from './der.ts';
import { Extension } from './x509.ts';

/** Intel's arc for what a PCK certificate says about its platform (Intel SGX PCK Certificate specification). */
const SGX = '1.2.840.113741.1.13.1';

/** The identity and security version of one simulated platform. */
export interface PlatformTcb {
  /** 16 bytes. */
  ppid: Buffer;
  /** 16 bytes, one component SVN each. */
  cpuSvn: Buffer;
  pceSvn: number;
  /** 2 bytes. */
  pceId: Buffer;
  /** 6 bytes: family, model, stepping, platform type, custom SKU. */
  fmspc: Buffer;
}

function entry(arc: string, value: Buffer): Buffer {
  return sequence(oid(`${SGX}.${arc}`), value);
}

/** The SGX extension of a PCK leaf: PPID, TCB (16 SVNs, PCESVN, CPUSVN), PCEID, FMSPC, SGX type. */
export function sgxExtension(tcb: PlatformTcb): Extension {
  const components = [...tcb.cpuSvn].map((svn, i) => entry(`2.${i + 1}`, integer(svn)));
  const value = sequence(
    entry('1', octetString(tcb.ppid)),
    entry(
      '2',
      sequence(...components, entry('2.17', integer(tcb.pceSvn)), entry('2.18', octetString(tcb.cpuSvn))),
    ),
    entry('3', octetString(tcb.pceId)),
    entry('4', octetString(tcb.fmspc)),
    entry('5', enumerated(1)),
  );
  return new Extension(SGX, false, value);
}
