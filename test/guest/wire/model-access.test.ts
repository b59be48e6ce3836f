import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseMechanism } from '../../../guest/wire/mechanism.ts';
import { codeOf } from '../../support/throws.ts';

const shipped = readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url), 'utf8');

const INFERENCE = `
  upstream: https://models.invalid/v1/chat/completions
  ca_pem: null
  models: [vendor/model-1, vendor/model-2]
  caps: {requests: 100, sent_bytes: 1000000, received_bytes: 1000000, tokens: 100000, reply_tokens: 4096}
`;
const PACKAGES = `
  index: https://packages.invalid/simple/
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    AAAA
    -----END CERTIFICATE-----
  names: [requests, charset-normalizer]
  max_bytes: 200000000
`;

/** The shipped mechanism with these two sections. */
const withSections = (inference: string, packages: string) =>
  parseMechanism(
    Buffer.from(
      shipped
        .replace('inference: null\n', `inference: ${inference}\n`)
        .replace('packages: null\n', `packages: ${packages}\n`),
    ),
  ).mechanism;

describe('a mechanism', () => {
  it('offers neither models nor packages as it is shipped', () => {
    expect(withSections('null', 'null')).toMatchObject({ inference: null, packages: null });
  });

  it('offers what an operator names', () => {
    expect(withSections(INFERENCE, PACKAGES)).toMatchObject({
      inference: { models: ['vendor/model-1', 'vendor/model-2'], ca_pem: null, caps: { requests: 100 } },
      packages: { index: 'https://packages.invalid/simple/', ca_pem: expect.stringMatching(/^-----BEGIN/) },
    });
  });

  it.each<[string, string, string]>([
    ['a plain address', 'https:', 'http:'],
    ['credentials in an address', 'https://models', 'https://user:word@models'],
    ['a query', '/completions', '/completions?preset=x'],
    ['a model twice', 'vendor/model-2', 'vendor/model-1'],
    ['no model', '[vendor/model-1, vendor/model-2]', '[]'],
    ['no cap of tokens', ' tokens: 100000,', ''],
    ['a cap of nothing', 'requests: 100', 'requests: 0'],
    ['another field', '  ca_pem: null', '  ca_pem: null\n  provider: x'],
  ])('refuses %s of a model', (_, from, to) => {
    expect(INFERENCE).toContain(from);
    expect(codeOf(() => withSections(INFERENCE.replace(from, to), 'null'))).toBe('schema_invalid');
  });

  it.each<[string, string, string]>([
    ['a plain address', 'https:', 'http:'],
    ['credentials in an address', 'https://packages', 'https://user:word@packages'],
    ['a name as people write it', 'charset-normalizer', 'Charset_Normalizer'],
    ['more than 200 MB', '200000000', '200000001'],
  ])('refuses %s of an index', (_, from, to) => {
    expect(PACKAGES).toContain(from);
    expect(codeOf(() => withSections('null', PACKAGES.replace(from, to)))).toBe('schema_invalid');
  });
});
