import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { parseMechanism, trackRules } from '../../../guest/wire/mechanism.ts';
import { codeOf, thrown } from '../../support/throws.ts';

const shipped = readFileSync(new URL('../../../guest/mechanism.yaml', import.meta.url));
const edited = (from: string, to: string) => {
  const text = shipped.toString();
  if (!text.includes(from)) throw new Error(`the shipped mechanism has no "${from}"`);
  return Buffer.from(text.replace(from, to));
};
const appended = (more: string) => Buffer.concat([shipped, Buffer.from(more)]);

describe('parseMechanism', () => {
  it('reads the shipped document, and pins its exact bytes', () => {
    const pinned = parseMechanism(shipped);
    expect(pinned.digest).toBe(sha256Hex(shipped));
    expect(trackRules(pinned.mechanism, 'terminal-bench')).toMatchObject({
      r: 'plan',
      failed_reps: 'counted',
      metric: 'pass_rate',
    });
    expect(parseMechanism(appended('# a comment\n')).digest).not.toBe(pinned.digest);
  });

  it.each([
    ['a key twice', appended('schema_version: 1\n')],
    [
      'an alias',
      `${edited('max_start_retries: 2', 'max_start_retries: &two 2\n# \n').toString()}\nx: *two\n`,
    ],
    ['an unknown tag', edited('schema_version: 1', 'schema_version: !int 1')],
    ['a second document', appended('---\na: 1\n')],
    ['a tab for indentation', appended('x:\n\ty: 1\n')],
    ['__proto__', appended('  __proto__: {}\n')],
    ['an unclosed bracket', appended('x: [1\n')],
    ['ten thousand levels', appended(`x: ${'['.repeat(10_000)}`)],
    ['bytes that are not UTF-8', Buffer.concat([shipped, Buffer.of(0x23, 0xff)])],
    ['more than 256 KiB', appended(`#${'x'.repeat(256 * 1024)}\n`)],
  ])('refuses %s', (_, bytes) => {
    expect(codeOf(() => parseMechanism(Buffer.from(bytes)))).toBe('mechanism_invalid');
  });

  it.each([
    ['nothing', Buffer.from('')],
    ['a scalar', Buffer.from('1')],
    ['an unknown key', appended('extra: 1\n')],
    ['a merge key', appended('<<: {extra: 1}\n')],
    ['a missing key', edited('max_start_retries: 2', '')],
    ['another version', edited('schema_version: 1', 'schema_version: 2')],
    ['a string for a number', edited('pids: 512', 'pids: "512"')],
    ['a negative number', edited('pids: 512', 'pids: -1')],
    ['a fraction', edited('pids: 512', 'pids: 1.5')],
    ['infinity', edited('pids: 512', 'pids: .inf')],
    ['2^53', edited('pids: 512', 'pids: 9007199254740992')],
    ['no completed rep needed', edited('min_completed: 1', 'min_completed: 0')],
    ['an unknown word', edited('failed_reps: counted', 'failed_reps: ignored')],
    ['a CVE that is none', edited('CVE-2024-21626', 'CVE-24-1')],
  ])('refuses %s by its schema', (_, bytes) => {
    expect(codeOf(() => parseMechanism(bytes))).toBe('schema_invalid');
  });

  it('reads 32 mappings or 64 lists deep, and refuses more by code, not by a crash', () => {
    const lists = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const maps = (depth: number) => `${'{a: '.repeat(depth)}1${'}'.repeat(depth)}`;
    for (const depth of [31, 32, 33, 65, 500, 700, 1000, 2000, 4000]) {
      for (const nested of [lists(depth * 2), maps(depth)]) {
        const code = codeOf(() => parseMechanism(appended(`x: ${nested}\n`)));
        expect(code, nested.slice(0, 8)).toBe(depth < 32 ? 'schema_invalid' : 'mechanism_invalid');
      }
    }
  });

  it('names the field', () => {
    const error = thrown(() => parseMechanism(edited('pids: 512', 'pids: many')));
    expect(error.message).toContain('tracks.terminal-bench.pids');
  });

  it('says what was wrong on one line', () => {
    expect(thrown(() => parseMechanism(appended('schema_version: 1\n'))).message).not.toContain('\n');
  });
});

describe('trackRules', () => {
  it('refuses unknown tracks, inherited names among them', () => {
    const { mechanism } = parseMechanism(shipped);
    for (const name of ['chess', 'constructor', '__proto__', '']) {
      expect(codeOf(() => trackRules(mechanism, name))).toBe('track_unknown');
    }
  });
});
