import { describe, expect, it } from 'vitest';
import {
  parseKeyProvider,
  readRuntimeClaims,
  verifyMrConfigId,
} from '../../../guest/attest/runtime-claims.ts';
import { runtimeEventDigest } from '../../../guest/attest/runtime-event.ts';
import type { WireEvent } from '../../../guest/wire/result.ts';

const COMPOSE_HASH = 'c3'.repeat(32);
const KEY_PROVIDER = '{"name":"kms","id":"3059"}';

type Named = readonly [name: string, payload: Buffer];
const BOOT: readonly Named[] = [
  ['system-preparing', Buffer.alloc(0)],
  ['app-id', Buffer.alloc(20, 0xa9)],
  ['compose-hash', Buffer.from(COMPOSE_HASH, 'hex')],
  ['instance-id', Buffer.alloc(20, 0x1b)],
  ['boot-mr-done', Buffer.alloc(0)],
  ['mr-kms', Buffer.alloc(32)],
  ['os-image-hash', Buffer.alloc(32)],
  ['key-provider', Buffer.from(KEY_PROVIDER)],
  ['storage-fs', Buffer.from('ext4')],
  ['system-ready', Buffer.alloc(0)],
];

function logOf(events: readonly Named[]): WireEvent[] {
  const firmware: WireEvent = { imr: 0, digest: '00'.repeat(48) };
  const runtime = events.map(([event, payload]): WireEvent => {
    const digest = runtimeEventDigest(event, payload);
    return { imr: 3, event_type: 0x08000001, event, event_payload: payload.toString('hex'), digest };
  });
  return [firmware, ...runtime];
}

const without = (name: string) => BOOT.filter(([event]) => event !== name);
const only = (name: string) => BOOT.filter(([event]) => event === name);
const withPayload = (name: string, payload: Buffer) =>
  BOOT.map((entry): Named => (entry[0] === name ? [name, payload] : entry));
/** The boot with `name` moved directly before `before`. */
const moved = (name: string, before: string) =>
  without(name).flatMap((entry) => (entry[0] === before ? [...only(name), entry] : [entry]));
const code = (name: string) => expect.objectContaining({ code: name, fault: 'attestation' });

const REQUIRED = ['app-id', 'compose-hash', 'instance-id', 'key-provider', 'storage-fs', 'system-ready'];

describe('readRuntimeClaims', () => {
  it('reads an honest boot', () => {
    expect(readRuntimeClaims(logOf(BOOT))).toEqual({
      appId: 'a9'.repeat(20),
      composeHash: COMPOSE_HASH,
      instanceId: '1b'.repeat(20),
      keyProvider: { name: 'phala', id: '3059' },
      storageFs: 'ext4',
    });
  });

  it('takes an empty instance id, as VMs deployed without one have', () => {
    expect(readRuntimeClaims(logOf(withPayload('instance-id', Buffer.alloc(0)))).instanceId).toBe('');
  });

  it.each(REQUIRED)('refuses a log without %s', (name) => {
    expect(() => readRuntimeClaims(logOf(without(name)))).toThrow(code('event_missing'));
  });

  it.each(REQUIRED)('refuses a second %s', (name) => {
    const twice = [...BOOT.slice(0, -1), ...only(name), ...only('system-ready')];
    expect(() => readRuntimeClaims(logOf(twice))).toThrow(code('event_duplicate'));
  });

  it.each(REQUIRED)('refuses a renamed %s', (name) => {
    const renamed = BOOT.map((entry): Named => (entry[0] === name ? [`${name}x`, entry[1]] : entry));
    expect(() => readRuntimeClaims(logOf(renamed))).toThrow(code('event_missing'));
  });

  it('refuses key-provider before compose-hash', () => {
    expect(() => readRuntimeClaims(logOf(moved('key-provider', 'compose-hash')))).toThrow(
      code('event_order'),
    );
  });

  it.each(REQUIRED.slice(0, -1))('refuses %s after system-ready', (name) => {
    const late = [...without(name), ...only(name)];
    expect(() => readRuntimeClaims(logOf(late))).toThrow(code('event_order'));
  });

  it('refuses any event after system-ready', () => {
    const extended = [...BOOT, ['app-event', Buffer.from('x')] as const];
    expect(() => readRuntimeClaims(logOf(extended))).toThrow(code('event_order'));
  });

  it.each([
    ['a compose hash of 31 bytes', 'compose-hash', Buffer.alloc(31)],
    ['a compose hash of 33 bytes', 'compose-hash', Buffer.alloc(33)],
    ['an empty app id', 'app-id', Buffer.alloc(0)],
    ['an app id of 65 bytes', 'app-id', Buffer.alloc(65)],
    ['an empty file system', 'storage-fs', Buffer.alloc(0)],
    ['a file system with a newline', 'storage-fs', Buffer.from('ext4\n')],
    ['a file system with a NUL', 'storage-fs', Buffer.from('ext4\0')],
  ])('refuses %s', (_, name, payload) => {
    expect(() => readRuntimeClaims(logOf(withPayload(name, payload)))).toThrow(code('event_log_invalid'));
  });
});

describe('parseKeyProvider', () => {
  it.each(['kms', 'phala', 'phala-kms'])('knows %s as phala', (name) => {
    expect(parseKeyProvider(Buffer.from(JSON.stringify({ name, id: 'K' })))).toEqual({
      name: 'phala',
      id: 'K',
    });
  });

  it('leaves other names and every id as they are', () => {
    expect(parseKeyProvider(Buffer.from('{"id":"Kms","name":"local-sgx"}'))).toEqual({
      name: 'local-sgx',
      id: 'Kms',
    });
  });

  it.each(['kms', 'None', '{"name":"kms","id":""}'])('refuses %s: it has no id', (text) => {
    expect(() => parseKeyProvider(Buffer.from(text))).toThrow(code('key_provider_without_id'));
  });

  it.each([
    '',
    'kms\n',
    '{"name":"kms"}',
    '{"name":"kms","id":7}',
    '{"name":"kms","id":"K","more":1}',
    '{"name":"kms","name":"kms","id":"K"}',
    '{"name":"kms","id":"K"',
    '{"name":"k ms","id":"K"}',
    '{"name":"kms","id":"K\\u0000"}',
    `{"name":"kms","id":"${'K'.repeat(5000)}"}`,
  ])('refuses %j', (text) => {
    expect(() => parseKeyProvider(Buffer.from(text))).toThrow(code('event_log_invalid'));
  });
});

describe('verifyMrConfigId', () => {
  const of = (mrConfigId: string) => () => verifyMrConfigId({ mrConfigId }, COMPOSE_HASH);
  const tail = '00'.repeat(15);

  it.each([
    ['zero', '00'.repeat(48)],
    ['the compose hash under version 1', `01${COMPOSE_HASH}${tail}`],
    ['anything under another version', `02${'ff'.repeat(47)}`],
  ])('takes %s', (_, mrConfigId) => {
    expect(of(mrConfigId)).not.toThrow();
  });

  it.each([
    ['another compose hash', `01${'c4'.repeat(32)}${tail}`],
    ['bytes after the compose hash', `01${COMPOSE_HASH}${'00'.repeat(14)}01`],
  ])('refuses, under version 1, %s', (_, mrConfigId) => {
    expect(of(mrConfigId)).toThrow(code('mr_config_id_mismatch'));
  });
});
