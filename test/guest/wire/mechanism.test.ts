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

const AUDIT = {
  policy: null,
  failed_reps: 'excluded',
  min_completed: 1,
  cpus: 1,
  memory_mb: 2048,
  pids: 256,
};
const CLOSED = { ranked: ['none', 'inference'], calibration: ['none', 'inference'] };
const audit = (tasks: number, r: number, cpuSeconds: number) => ({
  ...AUDIT,
  tasks_per_round: tasks,
  r,
  cpu_budget_ms: cpuSeconds * 1000,
  // With one CPU the wall backstop is three times the CPU budget.
  wall_budget_ms: cpuSeconds * 3000,
  networks: CLOSED,
});
const MCC = { metric: 'clamped_mcc', cut: 0.2 };

describe('the shipped table (spec/02)', () => {
  const { mechanism } = parseMechanism(shipped);

  it.each(
    Object.entries({
      skills: { ...audit(50, 3, 8), ...MCC },
      mcp_servers: { ...audit(40, 3, 15), ...MCC },
      packages: { ...audit(30, 3, 30), ...MCC },
      repositories: { ...audit(50, 2, 90), metric: 'f2', cut: 0.5 },
      'terminal-bench': {
        tasks_per_round: 'plan',
        r: 'plan',
        policy: 'plan',
        failed_reps: 'counted',
        min_completed: 1,
        cpu_budget_ms: 'task',
        wall_budget_ms: 'task',
        cpus: 'task',
        memory_mb: 'task',
        pids: 512,
        networks: { ranked: ['none', 'inference'], calibration: ['none', 'inference', 'open'] },
        metric: 'pass_rate',
        cut: null,
      },
    }),
  )('has %s', (track, rules) => {
    expect(trackRules(mechanism, track)).toEqual(rules);
  });

  it('has those tracks and no other, and no weight for calibration', () => {
    expect(Object.keys(mechanism.tracks)).toHaveLength(5);
    expect(mechanism.calibration_weight).toBe(0);
  });

  it.each([
    ['an open network in a ranked plan', edited('ranked: [none, inference]', 'ranked: [none, open]')],
    ['an unknown network', edited('calibration: [none, inference]', 'calibration: [none, host]')],
    ['no network at all', edited('ranked: [none, inference]', 'ranked: []')],
    ['a weight for calibration', edited('calibration_weight: 0', 'calibration_weight: 1')],
    ['a cut above 1', edited('cut: 0.50', 'cut: 50')],
    ['half a CPU', edited('cpus: 1', 'cpus: 0.5')],
    ['a track without memory', edited('    memory_mb: 2048\n', '')],
  ])('cannot have %s', (_, bytes) => {
    expect(codeOf(() => parseMechanism(bytes))).toBe('schema_invalid');
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
