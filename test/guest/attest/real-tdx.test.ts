import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseEventLog } from '../../../guest/attest/event-log.ts';
import { checkOwnEvidence } from '../../../guest/attest/evidence.ts';
import { cutToDeclaredLength, hasIntelSeam, isDebugTd, parseQuote } from '../../../guest/attest/quote.ts';
import { measurementOf, verifyReplay } from '../../../guest/attest/registers.ts';
import { readRuntimeClaims, verifyMrConfigId } from '../../../guest/attest/runtime-claims.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { eventSchema } from '../../../guest/wire/result.ts';
import { realTdx } from '../../support/real-tdx.ts';

const facts = JSON.parse(
  readFileSync(new URL('../../vectors/event-log.json', import.meta.url), 'utf8'),
).real_tdx;

describe('a genuine TDX quote', () => {
  beforeEach(({ skip }) => skip(realTdx.absent, realTdx.why));

  it('parses, with zero bytes after its declared length', () => {
    const bytes = realTdx.quote();
    const quote = parseQuote(bytes);
    expect(quote.version).toBe(4);
    expect(quote.mrtd).toMatch(/^f06dfda6dce1cf90/);
    expect(quote.rtmr[3]).toBe(facts.rtmr3);
    expect([isDebugTd(quote), hasIntelSeam(quote)]).toEqual([false, true]);
    expect(quote.certChainPem.match(/BEGIN CERTIFICATE/g)).toHaveLength(3);
    expect(quote.trailing).toEqual(Buffer.alloc(bytes.length - quote.declaredLength));
    expect(quote.trailing.length).toBeGreaterThan(0);
    expect(parseQuote(cutToDeclaredLength(bytes)).trailing).toHaveLength(0);
  });

  it('has a log that replays to all four registers and names the compose hash', () => {
    const quote = parseQuote(realTdx.quote());
    const events = parseEventLog(realTdx.eventLog());
    verifyReplay(quote, events);
    const claims = readRuntimeClaims(events);
    verifyMrConfigId(quote, claims.composeHash);
    expect(claims.composeHash).toBe(facts.compose_hash);
    expect(claims.keyProvider.name).toBe('phala');
    expect(measurementOf(quote, claims).os_image_hash).toBe(facts.os_image_hash_by_registers);
    for (const event of events) expect(eventSchema.safeParse(event).success).toBe(true);
  });

  it('is refused for its file system and for nothing before it', () => {
    const quote = parseQuote(realTdx.quote());
    const claims = readRuntimeClaims(parseEventLog(realTdx.eventLog()));
    const raw = {
      quote: realTdx.quote(),
      eventLog: realTdx.eventLog(),
      vmConfig: '{"vcpu":1,"memory_mb":1}',
    };
    const expected = {
      measurement: measurementOf(quote, claims),
      keyProvider: claims.keyProvider,
      vmShape: { vcpu: 1, memory_mb: 1 },
      reportData: quote.reportData,
    };
    expect(() => checkOwnEvidence(raw, expected)).toThrow(
      expect.objectContaining({ code: 'storage_fs_not_ext4' }),
    );
  });

  it('has the compose hash of its app-compose: null members dropped, keys sorted, compact', () => {
    const document = JSON.parse(realTdx.appCompose()) as Record<string, unknown>;
    const kept = Object.entries(document).filter(([, value]) => value !== null);
    const text = JSON.stringify(Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))));
    expect(sha256Hex(text)).toBe(facts.compose_hash);
  });
});
