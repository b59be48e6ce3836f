import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import { type KeyProvider, keyProviderSchema } from '../wire/measurement.ts';
import type { WireEvent } from '../wire/result.ts';
import type { TdxQuote } from './quote.ts';
import { isRuntimeEvent, type RuntimeEvent } from './runtime-event.ts';

/** What the boot of the VM recorded in RTMR3. True only of a log that replays to a verified quote. */
export interface RuntimeClaims {
  /** Lower-case hex. */
  appId: string;
  /** 64 lower-case hex digits. */
  composeHash: string;
  /** Lower-case hex; empty on a VM without an instance id. */
  instanceId: string;
  keyProvider: KeyProvider;
  storageFs: string;
}

/** Different spellings of Phala's KMS over the releases; the id tells KMSs apart (spec/01). */
const PHALA_KMS_NAMES: readonly string[] = ['kms', 'phala', 'phala-kms'];
const PRINTABLE = /^[\x20-\x7e]+$/;

const keyProviderJson = z.strictObject({ name: z.string(), id: z.string() });

/** Where the one event of this name stands. */
function indexOfOnly(events: readonly RuntimeEvent[], name: string): number {
  const first = events.findIndex((event) => event.event === name);
  if (first < 0) throw new EvaluatorError('event_missing', `event log: no ${name} event`);
  if (events.findLastIndex((event) => event.event === name) !== first) {
    throw new EvaluatorError('event_duplicate', `event log: more than one ${name} event`);
  }
  return first;
}

/** After system-ready the VM runs foreign code: what is recorded from then on proves nothing. */
function verifyOrder(events: readonly RuntimeEvent[]): void {
  const ready = indexOfOnly(events, 'system-ready');
  if (ready !== events.length - 1) {
    throw new EvaluatorError('event_order', 'event log: events follow system-ready');
  }
  if (indexOfOnly(events, 'compose-hash') > indexOfOnly(events, 'key-provider')) {
    throw new EvaluatorError('event_order', 'event log: key-provider before compose-hash');
  }
}

function payloadOf(events: readonly RuntimeEvent[], name: string): Buffer {
  return Buffer.from(events[indexOfOnly(events, name)]?.event_payload ?? '', 'hex');
}

function textOf(payload: Buffer, name: string): string {
  const text = payload.toString('latin1');
  if (!PRINTABLE.test(text)) {
    throw new EvaluatorError('event_log_invalid', `event log, ${name}: its payload is not printable text`);
  }
  return text;
}

/**
 * Reads a key-provider payload: plain text (a name alone) or JSON {"name","id"}.
 * @throws event_log_invalid; key_provider_without_id, because without one any host's own KMS fits the name.
 */
export function parseKeyProvider(payload: Buffer): KeyProvider {
  const text = textOf(payload, 'key-provider');
  if (!text.startsWith('{')) {
    throw new EvaluatorError(
      'key_provider_without_id',
      `event log, key-provider: ${JSON.stringify(text.slice(0, 64))} has no id; boot the VM with a KMS`,
    );
  }
  let parsed: z.ZodSafeParseResult<{ name: string; id: string }>;
  try {
    parsed = keyProviderJson.safeParse(parseForeignJson(payload, { maxBytes: 4096, maxDepth: 1 }));
  } catch (cause) {
    throw new EvaluatorError('event_log_invalid', 'event log, key-provider: unreadable JSON', { cause });
  }
  if (!parsed.success) {
    throw new EvaluatorError('event_log_invalid', 'event log, key-provider: not {"name","id"}');
  }
  const { name, id } = parsed.data;
  if (id === '') {
    throw new EvaluatorError('key_provider_without_id', 'event log, key-provider: its id is empty');
  }
  const provider = keyProviderSchema.safeParse({ name: PHALA_KMS_NAMES.includes(name) ? 'phala' : name, id });
  if (!provider.success) {
    throw new EvaluatorError('event_log_invalid', 'event log, key-provider: name or id is not visible ASCII');
  }
  return provider.data;
}

function hexOf(events: readonly RuntimeEvent[], name: string, min: number, max: number): string {
  const payload = payloadOf(events, name);
  if (payload.length < min || payload.length > max) {
    throw new EvaluatorError('event_log_invalid', `event log, ${name}: a payload of ${payload.length} bytes`);
  }
  return payload.toString('hex');
}

/**
 * What the log says about the VM: exactly one event of each kind, in the order of an honest boot, nothing
 * after system-ready (spec/04). Says nothing about whether the log is true: see `verifyReplay`.
 * @throws event_missing, event_duplicate, event_order, event_log_invalid, key_provider_without_id.
 */
export function readRuntimeClaims(events: readonly WireEvent[]): RuntimeClaims {
  const runtime = events.filter(isRuntimeEvent);
  verifyOrder(runtime);
  return {
    appId: hexOf(runtime, 'app-id', 1, 64),
    composeHash: hexOf(runtime, 'compose-hash', 32, 32),
    instanceId: hexOf(runtime, 'instance-id', 0, 64),
    keyProvider: parseKeyProvider(payloadOf(runtime, 'key-provider')),
    storageFs: textOf(payloadOf(runtime, 'storage-fs'), 'storage-fs'),
  };
}

/**
 * When mr_config_id is of version 1 it names the compose hash that the log claims; zero and other versions
 * say nothing about it (spec/04).
 * @throws mr_config_id_mismatch.
 */
export function verifyMrConfigId(quote: Pick<TdxQuote, 'mrConfigId'>, composeHash: string): void {
  if (!quote.mrConfigId.startsWith('01')) return;
  if (quote.mrConfigId !== `01${composeHash}${'00'.repeat(15)}`) {
    throw new EvaluatorError(
      'mr_config_id_mismatch',
      "quote: mr_config_id names another compose hash than the log's",
    );
  }
}
