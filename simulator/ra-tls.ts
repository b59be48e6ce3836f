import { createHash } from 'node:crypto';
import { octetString } from './der.ts';
import type { EventLogEntry } from './event-log.ts';
import { scaleBytes, scaleVec, u32le } from './scale.ts';
import { Extension } from './x509.ts';

const DSTACK = '1.3.6.1.4.1.62397.1';

/** dstack's certificate extensions. */
export const RA_TLS_OIDS = {
  quote: `${DSTACK}.1`,
  eventLog: `${DSTACK}.2`,
  appId: `${DSTACK}.3`,
  usage: `${DSTACK}.4`,
  attestation: `${DSTACK}.8`,
} as const;

/** How a certificate carries its quote: two extensions up to dstack 0.5.8, one versioned attestation after. */
export type CertForm = 'quote-and-log' | 'versioned';

/** What a certificate's quote signs: SHA-512("ratls-cert:" ‖ SPKI DER), 64 bytes. */
export function raTlsReportData(spki: Uint8Array): Buffer {
  return createHash('sha512').update('ratls-cert:').update(spki).digest();
}

export interface RaTlsEvidence {
  quote: Buffer;
  /** The whole log, as the guest agent hands it out. */
  eventLog: readonly EventLogEntry[];
  /** 64 bytes. */
  reportData: Buffer;
  /** JSON text. */
  vmConfig: string;
}

function extension(oid: string, value: Uint8Array | string): Extension {
  return new Extension(oid, false, octetString(Buffer.from(value as Uint8Array)));
}

/**
 * A VersionedAttestation of version 0: TDX, quote, stripped log, runtime events, report data, config. Stripped
 * means that only RTMR3's events are there, without their digests, which follow from names and payloads.
 */
function versionedAttestation(evidence: RaTlsEvidence): Buffer {
  const runtime = evidence.eventLog.filter((entry) => entry.imr === 3);
  const payload = (entry: EventLogEntry) => scaleBytes(Buffer.from(entry.event_payload, 'hex'));
  const events = runtime.map((entry) =>
    Buffer.concat([
      u32le(entry.imr),
      u32le(entry.event_type),
      scaleBytes(''),
      scaleBytes(entry.event),
      payload(entry),
    ]),
  );
  return Buffer.concat([
    Buffer.from([0, 0]), // version 0; variant 0 is TDX
    scaleBytes(evidence.quote),
    scaleVec(events),
    scaleVec(runtime.map((entry) => Buffer.concat([scaleBytes(entry.event), payload(entry)]))),
    evidence.reportData,
    scaleBytes(evidence.vmConfig),
  ]);
}

/** The extensions by which a leaf proves which VM holds its key. */
export function evidenceExtensions(evidence: RaTlsEvidence, form: CertForm): Extension[] {
  if (form === 'versioned') return [extension(RA_TLS_OIDS.attestation, versionedAttestation(evidence))];
  return [
    extension(RA_TLS_OIDS.quote, evidence.quote),
    extension(RA_TLS_OIDS.eventLog, JSON.stringify(evidence.eventLog)),
  ];
}

/** The extensions that the KMS puts into every app certificate: app id and usage. */
export function appExtensions(appId: Uint8Array): Extension[] {
  return [extension(RA_TLS_OIDS.appId, appId), extension(RA_TLS_OIDS.usage, 'app:custom')];
}
