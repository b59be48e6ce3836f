import { createHash, createPublicKey } from 'node:crypto';
import { EvaluatorError } from '../guest/errors.ts';
import { type KeyProvider, type Measurement, osImageHash, type VmShape } from '../guest/wire/measurement.ts';
import { pemChain } from './certificates.ts';
import { type Collateral, createCollateral, type QuotingEnclave } from './collateral.ts';
import {
  type BootRecord,
  deriveBoot,
  type EventLogEntry,
  replayRegister,
  runtimeEvents,
} from './event-log.ts';
import { type Fault, findFault, hasFault } from './faults.ts';
import { createPki, type Pki } from './pki.ts';
import { encodeQuote, type QuoteLayout, type QuoteSigner, type TdBody } from './quote.ts';
import { deriveBytes, deriveHex, deriveKey } from './seed.ts';
import type { PlatformTcb } from './sgx-extension.ts';

export interface PlatformOptions {
  /** At least 16 bytes; the same seed gives the same keys and registers. */
  seed: Buffer;
  /** The exact bytes of app-compose: their SHA-256 is the compose hash. */
  appCompose: Buffer;
  /** Milliseconds since the epoch; certificates and collateral are valid around it. */
  nowMs: number;
  faults: readonly Fault[];
  vmShape?: VmShape;
  /** A boot of someone else's, such as a genuine VM's; by default one derived from the seed. */
  boot?: BootRecord;
  /** Where the root certificate says that its CRL lies. */
  rootCrlUrl?: string;
}

export interface QuoteOptions {
  version: 4 | 5;
  /** The body of a version 5 quote; TD 1.5 unless asked otherwise. */
  body?: 'td10' | 'td15';
}

/** One simulated TDX machine with a dstack guest on it, and the mock Intel that vouches for it. */
export interface Platform {
  rootDer: Buffer;
  rootPem: string;
  collateral: Collateral;
  /** What would be published for this image. Under the fault wrong-measurement, quotes say otherwise. */
  measurement: Measurement;
  keyProvider: KeyProvider;
  vmShape: VmShape;
  appCompose: Buffer;
  appId: Buffer;
  instanceId: Buffer;
  deviceId: Buffer;
  /** dstack's catalogue digest of the OS image, as its events and Info have it. */
  osCatalogueHash: Buffer;
  /** The JSON payload of the key-provider event. */
  keyProviderInfo: string;
  eventLog: EventLogEntry[];
  /** The registers that quotes carry, hex. */
  registers: { mrtd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string };
  /** A fresh quote over 64 bytes of report data. */
  quote(reportData: Buffer, options: QuoteOptions): Buffer;
  /** The certificates with their private keys, for tests that forge. */
  pki: Pki;
  seed: Buffer;
  nowMs: number;
}

const DEFAULT_SHAPE: VmShape = { vcpu: 4, memory_mb: 8192 };
/** SEPT_VE_DISABLE alone; with the fault, the debug bit too. */
const TD_ATTRIBUTES = { production: '0000001000000000', debug: '0100001000000000' } as const;
const XFAM = 'e702060000000000';
/** TDX module 1.5, SVN 11; SEAM loader SVN 5. */
const TEE_TCB_SVN = Buffer.from('0b010500000000000000000000000000', 'hex');

function flipFirstByte(hex: string): string {
  return (Number.parseInt(hex.slice(0, 2), 16) ^ 0xff).toString(16).padStart(2, '0') + hex.slice(2);
}

function platformTcb(seed: Buffer): PlatformTcb {
  return {
    ppid: deriveBytes(seed, 'ppid', 16),
    cpuSvn: Buffer.from('05050a0a05ff00020000000000000000', 'hex'),
    pceSvn: 13,
    pceId: Buffer.from('0000', 'hex'),
    fmspc: Buffer.from('5e1400000000', 'hex'),
  };
}

/**
 * Makes a platform: its PKI and collateral, its TD with registers and event log, and its quotes.
 * @throws usage when the seed is shorter than 16 bytes.
 */
export async function createPlatform(options: PlatformOptions): Promise<Platform> {
  const { seed, appCompose, nowMs, faults } = options;
  if (seed.length < 16) {
    throw new EvaluatorError(
      'usage',
      `seed: at least 16 bytes (32 hex digits) are needed, not ${seed.length}`,
    );
  }
  const vmShape = options.vmShape ?? DEFAULT_SHAPE;
  const tcb = platformTcb(seed);
  const qe: QuotingEnclave = {
    mrEnclave: deriveHex(seed, 'qe/mrenclave', 32),
    mrSigner: deriveHex(seed, 'qe/mrsigner', 32),
    isvProdId: 2,
    isvSvn: 6,
  };
  const pki = await createPki({
    seed,
    nowMs,
    tcb,
    pckState: hasFault(faults, 'pck-revoked') ? 'revoked' : 'good',
    rootCrlUrl: options.rootCrlUrl ?? 'http://simulator.invalid/IntelSGXRootCA.der',
  });
  const collateral = createCollateral({
    pki,
    nowMs,
    tcb,
    teeTcbSvn: TEE_TCB_SVN,
    qe,
    validity: hasFault(faults, 'tcb-expired') ? 'expired' : 'current',
    tcbStatus: hasFault(faults, 'tcb-out-of-date') ? 'OutOfDate' : 'UpToDate',
  });

  const kmsRoot = createPublicKey(deriveKey(seed, 'kms-root')).export({ format: 'der', type: 'spki' });
  const keyProviderInfo = JSON.stringify({ name: 'kms', id: kmsRoot.toString('hex') });
  const composeHash = createHash('sha256').update(appCompose).digest();
  const appId = deriveBytes(seed, 'app-id', 20);
  const instanceId = deriveBytes(seed, 'instance-id', 20);
  const osCatalogueHash = deriveBytes(seed, 'os-image-hash', 32);
  const boot = options.boot ?? deriveBoot(seed, vmShape);
  const eventLog = [
    ...boot.events,
    ...runtimeEvents({
      appId,
      composeHash,
      instanceId,
      mrKms: deriveBytes(seed, 'mr-kms', 32),
      osImageHash: osCatalogueHash,
      keyProvider: Buffer.from(keyProviderInfo),
      storageFs: hasFault(faults, 'storage-zfs') ? 'zfs' : 'ext4',
    }),
  ];
  const registers = {
    mrtd: hasFault(faults, 'wrong-measurement') ? flipFirstByte(boot.mrtd) : boot.mrtd,
    rtmr0: replayRegister(eventLog, 0),
    rtmr1: replayRegister(eventLog, 1),
    rtmr2: replayRegister(eventLog, 2),
    rtmr3: replayRegister(eventLog, 3),
  };
  const { rtmr0, rtmr1, rtmr2, rtmr3 } = registers;
  const body: TdBody = {
    teeTcbSvn: TEE_TCB_SVN,
    mrSeam: deriveHex(seed, 'mr-seam', 48),
    tdAttributes: hasFault(faults, 'debug-td') ? TD_ATTRIBUTES.debug : TD_ATTRIBUTES.production,
    xfam: XFAM,
    mrtd: registers.mrtd,
    mrConfigId: `01${composeHash.toString('hex')}${'00'.repeat(15)}`,
    rtmrs: [rtmr0, rtmr1, rtmr2, rtmr3],
  };
  const signer: QuoteSigner = {
    attestationKey: deriveKey(seed, 'attestation'),
    pckKey: pki.pck.key,
    pckChain: pemChain(pki.pck, pki.platformCa, pki.root),
    qe,
    cpuSvn: tcb.cpuSvn,
  };
  const trailing = Buffer.alloc(findFault(faults, 'trailing-zeros')?.bytes ?? 0);

  return {
    rootDer: Buffer.from(pki.root.certificate.rawData),
    rootPem: pemChain(pki.root),
    collateral,
    measurement: {
      mrtd: boot.mrtd,
      rtmr0,
      rtmr1,
      rtmr2,
      compose_hash: composeHash.toString('hex'),
      os_image_hash: osImageHash({ mrtd: boot.mrtd, rtmr1, rtmr2 }),
    },
    keyProvider: { name: 'phala', id: kmsRoot.toString('hex') },
    vmShape,
    appCompose,
    appId,
    instanceId,
    deviceId: deriveBytes(seed, 'device-id', 32),
    osCatalogueHash,
    keyProviderInfo,
    eventLog,
    registers,
    quote: (reportData, { version, body: kind }) => {
      if (reportData.length !== 64) throw new RangeError(`report data: 64 bytes, not ${reportData.length}`);
      const layout: QuoteLayout = version === 4 ? { version } : { version, body: kind ?? 'td15' };
      return Buffer.concat([encodeQuote(body, reportData, signer, layout), trailing]);
    },
    pki,
    seed,
    nowMs,
  };
}
