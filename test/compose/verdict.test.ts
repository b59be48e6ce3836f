import { describe, expect, it } from 'vitest';
import { type DraftEntry, isComplete, judge, UNKNOWN, unknownFields } from '../../compose/verdict.ts';
import type { AllowlistEntry } from '../../guest/wire/measurement.ts';

const register = (digit: string) => digit.repeat(96);
const ENTRY: AllowlistEntry = {
  measurement: {
    mrtd: register('0'),
    rtmr0: register('1'),
    rtmr1: register('2'),
    rtmr2: register('3'),
    compose_hash: '4'.repeat(64),
    os_image_hash: '5'.repeat(64),
  },
  key_provider: { name: 'phala', id: 'c0ffee' },
  vm_shape: { vcpu: 1, memory_mb: 2048 },
  os_version: 'dstack-0.5.9',
  image_ref: `ghcr.io/owner/evaluator@sha256:${'6'.repeat(64)}`,
  git_revision: '7'.repeat(40),
};
const OTHER = { ...ENTRY, measurement: { ...ENTRY.measurement, rtmr0: register('a'), mrtd: register('b') } };
const LIST = { schema_version: 1 as const, entries: [OTHER, ENTRY] };
const FIELDS = Object.keys(ENTRY.measurement) as (keyof AllowlistEntry['measurement'])[];

const measuring = (field: string, value: string): DraftEntry => ({
  ...ENTRY,
  measurement: { ...ENTRY.measurement, [field]: value },
});

describe('judge', () => {
  it('finds what is listed, whatever its informative fields say', () => {
    expect(judge(ENTRY, LIST)).toEqual({ verdict: 'IN-LIST', differs: [] });
    const told = { ...ENTRY, os_version: 'x', vm_shape: UNKNOWN, image_ref: UNKNOWN } as const;
    expect(judge(told, LIST).verdict).toBe('IN-LIST');
  });

  it.each(FIELDS)('one other %s is not in the list, and named', (field) => {
    const value = ENTRY.measurement[field].replace(/^./, 'f');
    expect(judge(measuring(field, value), LIST)).toEqual({ verdict: 'NOT-IN-LIST', differs: [field] });
  });

  it('nor is another key provider, by name or id', () => {
    for (const field of ['name', 'id']) {
      const other = { ...ENTRY, key_provider: { ...ENTRY.key_provider, [field]: 'else' } };
      expect(judge(other, LIST)).toEqual({ verdict: 'NOT-IN-LIST', differs: [`key_provider.${field}`] });
    }
  });

  it.each(FIELDS)('an unknown %s leaves it unknown while the rest fits', (field) => {
    expect(judge(measuring(field, UNKNOWN), LIST).verdict).toBe('UNKNOWN');
  });

  it('what is known already settles it when it contradicts every entry', () => {
    const draft = measuring('compose_hash', UNKNOWN);
    const observed = { ...draft, measurement: { ...draft.measurement, rtmr2: register('e') } };
    expect(judge(observed, LIST)).toEqual({ verdict: 'NOT-IN-LIST', differs: ['rtmr2'] });
  });

  it('does not mix fields of two entries', () => {
    expect(judge(measuring('rtmr0', OTHER.measurement.rtmr0), LIST).verdict).toBe('NOT-IN-LIST');
  });
});

describe('a draft entry', () => {
  it('is complete when nothing is UNKNOWN', () => {
    expect(isComplete(ENTRY)).toBe(true);
  });

  it('names what is', () => {
    const draft: DraftEntry = {
      ...measuring('rtmr0', UNKNOWN),
      key_provider: { name: 'phala', id: UNKNOWN },
      vm_shape: UNKNOWN,
    };
    expect(unknownFields(draft)).toEqual(['rtmr0', 'key_provider.id', 'vm_shape']);
    expect(isComplete(draft)).toBe(false);
  });
});
