import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { EvidenceInput } from '../../../challenge/verify/evidence.ts';
import type { WireEvent } from '../../../guest/wire/result.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { evidenceOf, outcomeOf, REPORT_DATA, resigned } from '../../support/evidence.ts';
import { NOW_MS, testPlatform } from '../../support/valid-result.ts';

let platform: Platform;
let quote: Buffer;
beforeAll(async () => {
  platform = await testPlatform();
  quote = platform.quote(REPORT_DATA, { version: 4 });
});
const given = (overrides: Partial<EvidenceInput> = {}) => outcomeOf(evidenceOf(platform, { ...overrides }));

describe('the verification list', () => {
  it('passes true evidence, of every quote layout', async () => {
    expect(await given()).toBe('verified');
    for (const body of ['td10', 'td15'] as const) {
      expect(await given({ quoteBytes: platform.quote(REPORT_DATA, { version: 5, body }) })).toBe('verified');
    }
  });

  it('refuses a changed byte anywhere in a quote', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(quote.length - 1), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const changed = Buffer.from(quote);
        changed[at] = (changed[at] ?? 0) ^ mask;
        expect(await given({ quoteBytes: changed })).not.toBe('verified');
      }),
      { numRuns: 100 },
    );
  });
});

it('refuses another spelling of the same certificates', async () => {
  const chainAt = quote.indexOf('-----BEGIN');
  const starts = [...quote.keys()].filter((at) => at > chainAt && quote[at] === 0x0a);
  expect(starts.length).toBeGreaterThan(20);
  for (const at of starts) {
    for (const byte of [0x00, 0x0d, 0x20]) {
      const changed = Buffer.from(quote);
      changed[at] = byte;
      expect(await given({ quoteBytes: changed })).toMatch(/quote_malformed|certificate_malformed/);
    }
  }
});

describe('1 quote shape', () => {
  const edit = (offset: number, ...bytes: number[]) => {
    const changed = Buffer.from(quote);
    Buffer.from(bytes).copy(changed, offset);
    return changed;
  };
  it.each([
    ['version 3', () => edit(0, 3), 'quote_malformed'],
    ['SGX', () => edit(4, 0), 'quote_malformed'],
    ['another key type', () => edit(2, 3), 'quote_malformed'],
    ['another QE vendor', () => edit(12, 0), 'quote_malformed'],
    ['truncated', () => quote.subarray(0, -1), 'quote_malformed'],
    ['empty', () => Buffer.alloc(0), 'quote_malformed'],
    ['a trailing zero byte', () => Buffer.concat([quote, Buffer.alloc(1)]), 'quote_trailing_bytes'],
    ['a trailing byte', () => Buffer.concat([quote, Buffer.from([7])]), 'quote_trailing_bytes'],
  ] as const)('%s', async (_name, quoteBytes, code) => {
    expect(await given({ quoteBytes: quoteBytes() })).toBe(`quote_shape: ${code}`);
  });
});

describe('2 signature', () => {
  it('changed report without a signature', async () => {
    const changed = Buffer.from(quote);
    changed[600] = (changed[600] ?? 0) ^ 1;
    expect(await given({ quoteBytes: changed })).toBe('quote_chain: quote_signature_invalid');
  });

  it("a TDX module that is not Intel's, truly signed", async () => {
    for (const offset of [112, 160]) {
      const quoteBytes = resigned(platform, quote, offset, Buffer.from([1]));
      expect(await given({ quoteBytes })).toBe('quote_chain: seam_signer_invalid');
    }
  });

  it('TD attributes without SEPT_VE_DISABLE, or with reserved bits', async () => {
    for (const attributes of ['0000000000000000', '0002001000000000']) {
      const quoteBytes = resigned(platform, quote, 168, Buffer.from(attributes, 'hex'));
      expect(await given({ quoteBytes })).toBe('quote_chain: td_attributes_invalid');
    }
  });
});

it('3 TCB status: only what the policy names', async () => {
  const outdated = await testPlatform({ faults: [{ name: 'tcb-out-of-date' }] });
  expect(await outcomeOf(evidenceOf(outdated))).toBe('tcb_status: tcb_status_refused');
  const lenient = new Set(['UpToDate', 'OutOfDate']);
  expect(await outcomeOf(evidenceOf(outdated, { acceptedTcb: lenient }))).toBe('verified');
  expect(await given({ acceptedTcb: new Set() })).toBe('tcb_status: tcb_status_refused');
});

it('4 a debug TD', async () => {
  const debug = await testPlatform({ faults: [{ name: 'debug-td' }] });
  expect(await outcomeOf(evidenceOf(debug))).toBe('quote_chain: td_debug');
});

describe('5 registers and events', () => {
  type Edit = (events: WireEvent[]) => WireEvent[];
  const named = (name: string) => (event: WireEvent) => 'event' in event && event.event === name;
  const cases: [string, Edit, string][] = [
    ['dropped', (events) => events.filter((event) => !named('app-id')(event)), 'event_log_replay_mismatch'],
    ['reordered', (events) => events.toReversed(), 'event_log_replay_mismatch'],
    ['duplicated', (events) => [...events, ...events.filter(named('app-id'))], 'event_log_replay_mismatch'],
    [
      'renamed',
      (events) => events.map((event) => (named('app-id')(event) ? { ...event, event: 'app-xd' } : event)),
      'event_digest_mismatch',
    ],
    [
      'blank digest',
      (events) => events.map((event) => (named('app-id')(event) ? { ...event, digest: '' } : event)),
      'event_digest_mismatch',
    ],
    ['none', () => [], 'event_log_replay_mismatch'],
  ];
  it.each(cases)('events %s', async (_name, edit, code) => {
    const eventLog = edit([...evidenceOf(platform).eventLog]);
    expect(await given({ eventLog })).toBe(`registers: ${code}`);
  });

  it.each([376, 424, 472, 520])(
    'a truly signed register at %i that the log does not lead to',
    async (offset) => {
      const quoteBytes = resigned(platform, quote, offset, Buffer.alloc(48, 1));
      expect(await given({ quoteBytes })).toBe('registers: event_log_replay_mismatch');
    },
  );

  it('mr_config_id names another compose', async () => {
    const quoteBytes = resigned(platform, quote, 233, Buffer.alloc(32, 1));
    expect(await given({ quoteBytes })).toBe('registers: mr_config_id_mismatch');
  });

  it('storage that is not ext4', async () => {
    const zfs = await testPlatform({ faults: [{ name: 'storage-zfs' }] });
    expect(await outcomeOf(evidenceOf(zfs))).toBe('registers: storage_fs_not_ext4');
  });
});

describe('6 measurement', () => {
  it('of another image', async () => {
    const other = await testPlatform({ faults: [{ name: 'wrong-measurement' }] });
    expect(await outcomeOf(evidenceOf(other))).toBe('measurement: measurement_not_allowed');
    const otherCompose = await testPlatform({ appCompose: Buffer.from('{}') });
    const { allowlist } = evidenceOf(platform);
    expect(await outcomeOf(evidenceOf(otherCompose, { allowlist }))).toBe(
      'measurement: measurement_not_allowed',
    );
  });

  it('of the right image under another KMS', async () => {
    const { allowlist } = evidenceOf(platform);
    for (const change of [{ id: '00' }, { name: 'local-sgx' }]) {
      const entries = allowlist.entries.map((entry) => ({
        ...entry,
        key_provider: { ...entry.key_provider, ...change },
      }));
      const outcome = await given({ allowlist: { ...allowlist, entries } });
      expect(outcome).toBe('measurement: key_provider_not_allowed');
    }
  });

  it('never mixes two entries', async () => {
    const { allowlist } = evidenceOf(platform);
    const [entry] = allowlist.entries;
    if (!entry) throw new Error('no entry');
    const foreign = { ...entry, measurement: { ...entry.measurement, mrtd: '0'.repeat(96) } };
    const otherKms = { ...entry, key_provider: { name: 'phala', id: '00' } };
    const entries = [foreign, otherKms];
    expect(await given({ allowlist: { ...allowlist, entries } })).toBe(
      'measurement: key_provider_not_allowed',
    );
  });
});

describe('7 report data', () => {
  it.each([
    ['another', Buffer.alloc(64, 1)],
    ['zero', Buffer.alloc(64)],
    ['short', REPORT_DATA.subarray(0, 32)],
    ['empty', Buffer.alloc(0)],
    ['long', Buffer.alloc(65, 0x5a)],
  ])('%s', async (_name, reportData) => {
    expect(await given({ reportData })).toBe('report_data: report_data_mismatch');
  });
});

describe('the root', () => {
  it("Intel's refuses a simulator's quote", async () => {
    const { constants } = await import('@phala/dcap-qvl');
    expect(await given({ rootDer: constants.TRUSTED_ROOT_CA_DER })).toBe('quote_chain: root_not_trusted');
  });

  it("another simulator's, too", async () => {
    const other = await testPlatform({ seed: Buffer.alloc(32, 9) });
    expect(await given({ rootDer: other.rootDer })).toBe('quote_chain: root_not_trusted');
    const { quoteBytes, eventLog } = evidenceOf(other);
    expect(await given({ quoteBytes, eventLog })).toBe('quote_chain: root_not_trusted');
  });

  it('its own certificate with one byte more', async () => {
    const rootDer = Buffer.concat([platform.rootDer, Buffer.alloc(1)]);
    expect(await given({ rootDer })).toBe('quote_chain: root_not_trusted');
  });
});

describe('the time of verification', () => {
  const day = 86_400_000;
  it.each([
    ['NaN', Number.NaN, 'clock_invalid'],
    ['infinite', Number.POSITIVE_INFINITY, 'clock_invalid'],
    ['fractional', NOW_MS + 0.5, 'clock_invalid'],
    ['zero', 0, 'clock_invalid'],
    ['long past', NOW_MS - 10 * 365 * day, 'certificate_outside_validity'],
    ['long to come', NOW_MS + 10 * 365 * day, 'certificate_outside_validity'],
    ['two days ago', NOW_MS - 2 * day, 'collateral_not_yet_valid'],
    ['in two months', NOW_MS + 60 * day, 'collateral_expired'],
  ] as const)('%s', async (_name, nowMs, code) => {
    expect(await given({ nowMs })).toBe(`quote_chain: ${code}`);
  });
});
