import { extendRegister, RUNTIME_EVENT_TYPE, runtimeEventDigest } from '../guest/attest/event-log.ts';
import { deriveHex } from './seed.ts';

/** One event as the guest agent's JSON has it; digest and payload are lower-case hex. */
export interface EventLogEntry {
  imr: number;
  event_type: number;
  digest: string;
  event: string;
  event_payload: string;
}

/** What the firmware, the loader and the kernel measured: MRTD (48 bytes, hex) and the events of RTMR0 to RTMR2. */
export interface BootRecord {
  mrtd: string;
  events: EventLogEntry[];
}

const text = (value: string) => Buffer.from(value).toString('hex');

/** The event types of a real boot, in order: [register, TCG event type, payload]. */
const BOOT_SHAPE: readonly (readonly [number, number, string])[] = [
  [0, 0x8000000b, text('TdxTable')],
  [0, 0x8000000a, text('CFV')],
  [0, 0x80000001, text('SecureBoot')],
  [0, 0x80000001, text('PK')],
  [0, 0x80000001, text('KEK')],
  [0, 0x80000001, text('db')],
  [0, 0x80000001, text('dbx')],
  [0, 0x00000004, '00000000'],
  [0, 0x0000000a, text('ACPI DATA')],
  [1, 0x80000003, text('kernel')],
  [1, 0x80000007, text('Calling EFI Application from Boot Option')],
  [1, 0x00000004, '00000000'],
  [2, 0x00000006, text('LOADED_IMAGE::LoadOptions')],
  [2, 0x00000006, text('Linux initrd')],
];

/** A boot whose registers depend on the seed; the ACPI tables, and so RTMR0, on the VM's shape too. */
export function deriveBoot(seed: Uint8Array, shape: { vcpu: number; memory_mb: number }): BootRecord {
  const acpi = text('ACPI DATA');
  const events = BOOT_SHAPE.map(([imr, event_type, event_payload], i) => ({
    imr,
    event_type,
    digest: deriveHex(
      seed,
      event_payload === acpi ? `acpi/${shape.vcpu}/${shape.memory_mb}` : `boot-event/${i}`,
      48,
    ),
    event: '',
    event_payload,
  }));
  return { mrtd: deriveHex(seed, 'mrtd', 48), events };
}

/** A runtime event of RTMR3 with its digest. */
export function runtimeEvent(event: string, payload: Uint8Array): EventLogEntry {
  return {
    imr: 3,
    event_type: RUNTIME_EVENT_TYPE,
    digest: runtimeEventDigest(event, payload),
    event,
    event_payload: Buffer.from(payload).toString('hex'),
  };
}

export interface RuntimeFacts {
  /** 20 bytes. */
  appId: Buffer;
  /** 32 bytes. */
  composeHash: Buffer;
  /** 20 bytes. */
  instanceId: Buffer;
  /** 32 bytes. */
  mrKms: Buffer;
  /** 32 bytes: the catalogue's digest of the OS image, not the hash by registers. */
  osImageHash: Buffer;
  keyProvider: Buffer;
  storageFs: string;
}

/** The runtime events that dstack emits while it prepares an app, in its order. */
export function runtimeEvents(facts: RuntimeFacts): EventLogEntry[] {
  const none = Buffer.alloc(0);
  return [
    runtimeEvent('system-preparing', none),
    runtimeEvent('app-id', facts.appId),
    runtimeEvent('compose-hash', facts.composeHash),
    runtimeEvent('instance-id', facts.instanceId),
    runtimeEvent('boot-mr-done', none),
    runtimeEvent('mr-kms', facts.mrKms),
    runtimeEvent('os-image-hash', facts.osImageHash),
    runtimeEvent('key-provider', facts.keyProvider),
    runtimeEvent('storage-fs', Buffer.from(facts.storageFs)),
    runtimeEvent('system-ready', none),
  ];
}

/** The value of one register after the whole log, lower-case hex. */
export function replayRegister(events: readonly EventLogEntry[], imr: number): string {
  return extendRegister(events.filter((event) => event.imr === imr).map((event) => event.digest));
}
