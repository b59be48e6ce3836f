import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseMechanism } from '../../../guest/wire/mechanism.ts';
import { localMechanism, withOffers } from '../../../scripts/run/local-mechanism.ts';
import { codeOf } from '../../support/throws.ts';

const shipped = readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url));
const OFFERS = `packages:
  index: https://packages.invalid/simple/
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    AAAA
    -----END CERTIFICATE-----
  names: [idna]
  max_bytes: 1000000
`;

describe('withOffers', () => {
  it("puts an operator's sections into a mechanism, and changes nothing else", () => {
    const desk = localMechanism(shipped);
    const { mechanism } = parseMechanism(withOffers(desk, Buffer.from(OFFERS)));
    const before = parseMechanism(desk).mechanism;
    expect(mechanism).toEqual({ ...before, packages: expect.objectContaining({ names: ['idna'] }) });
    expect(mechanism.packages?.ca_pem).toMatch(/-----END CERTIFICATE-----\n$/);
  });

  it.each([
    ['another section', 'tracks: {}\n', 'schema_invalid'],
    ['an incomplete one', 'inference: {models: [x]}\n', 'schema_invalid'],
    ['no YAML', '[', 'mechanism_invalid'],
  ])('refuses %s', (_, text, code) => {
    expect(codeOf(() => withOffers(shipped, Buffer.from(text)))).toBe(code);
  });
});
