import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { taskKey } from '../../../guest/tasks/task-key.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { openKeys, recipientKey, sealKeys } from '../../../guest/wire/key-envelope.ts';
import {
  type KeyReleaseBinding,
  keyReleasePreimage,
  keyReleaseReportData,
  keyReplySchema,
  releasedKeysSchema,
} from '../../../guest/wire/key-release.ts';
import { codeOf } from '../../support/throws.ts';

/** An X25519 private key from its 32 raw bytes (RFC 8410). */
function privateKeyOf(raw: Buffer): KeyObject {
  const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');
  return createPrivateKey({ key: Buffer.concat([prefix, raw]), format: 'der', type: 'pkcs8' });
}

const vectors = JSON.parse(readFileSync(new URL('../../vectors/key-release.json', import.meta.url), 'utf8'));
const { report_data_v3: bound, task_keys: taskKeys, key_reply: vector } = vectors;

const BINDING: KeyReleaseBinding = {
  evalRunId: bound.preimage.eval_run_id,
  nonce: bound.preimage.key_release_nonce,
  planDigest: bound.preimage.plan_digest,
  spkiDigest: bound.preimage.ra_tls_spki_digest,
  tlsExporter: bound.preimage.tls_exporter,
  recipientPublicKey: bound.preimage.recipient_public_key,
};

describe('report data of the key release, version 3', () => {
  it('is that of the vector', () => {
    expect(encodeCanonical(keyReleasePreimage(BINDING)).toString()).toBe(bound.canonical);
    expect(keyReleaseReportData(BINDING).toString('hex')).toBe(bound.report_data);
  });

  it('differs with every member of the binding', () => {
    const all = Object.keys(BINDING).map((member) =>
      keyReleaseReportData({ ...BINDING, [member]: 'another' }).toString('hex'),
    );
    expect(new Set([...all, bound.report_data]).size).toBe(7);
  });
});

describe('task keys', () => {
  it.each<{ task_digest: string; key: string }>(taskKeys.keys)(
    'is that of the vector: $task_digest',
    ({ task_digest, key }) => {
      const goldenKey = Buffer.from(taskKeys.golden_key, 'hex');
      expect(taskKey(goldenKey, taskKeys.cache_id, task_digest).toString('hex')).toBe(key);
    },
  );
});

describe('the envelope of a key reply', () => {
  const recipient = privateKeyOf(Buffer.from(vector.recipient_private_key, 'hex'));
  const keys = releasedKeysSchema.parse(vector.released_keys);
  const reply = keyReplySchema.parse(vector.reply);
  if (!reply.released) throw new Error('the vector is a released reply');

  it('is that of the vector, both ways', () => {
    const ephemeral = privateKeyOf(Buffer.from(vector.ephemeral_private_key, 'hex'));
    const iv = Buffer.from(vector.iv, 'hex');
    expect(sealKeys(keys, vector.recipient_public_key, vector.context, ephemeral, iv)).toEqual(reply);
    expect(openKeys(reply, recipient, vector.context)).toEqual(keys);
  });

  it.each(['eval_run_id', 'nonce', 'spki'])('opens for no other %s', (member) => {
    const context = { ...vector.context, [member]: 'another' };
    expect(codeOf(() => openKeys(reply, recipient, context))).toBe('key_envelope_invalid');
  });

  it('opens with no other key', () => {
    const other = recipientKey().privateKey;
    expect(codeOf(() => openKeys(reply, other, vector.context))).toBe('key_envelope_invalid');
  });

  const flipped = (hex: string) => (Number.parseInt(hex[0] ?? '0', 16) ^ 1).toString(16) + hex.slice(1);
  it.each(['ephemeral_public_key', 'iv', 'ciphertext'] as const)('opens with no changed %s', (member) => {
    const changed = { ...reply, [member]: flipped(reply[member]) };
    expect(codeOf(() => openKeys(changed, recipient, vector.context))).toBe('key_envelope_invalid');
  });

  it.each(['', '00'.repeat(15)])('opens with no ciphertext of %j', (ciphertext) => {
    expect(codeOf(() => openKeys({ ...reply, ciphertext }, recipient, vector.context))).toBe(
      'key_envelope_invalid',
    );
  });

  it.each(['00'.repeat(32), `01${'00'.repeat(31)}`])('is made for no key of small order: %s', (weak) => {
    const { privateKey } = recipientKey();
    const make = () => sealKeys(keys, weak, vector.context, privateKey, Buffer.alloc(12));
    expect(codeOf(make)).toBe('key_envelope_invalid');
  });
});
