import { describe, expect, it } from 'vitest';
import { contextJson, repFiles } from '../../../../guest/tracks/audit/files.ts';
import { isAlive, MAX_PROBE_BYTES, newProbe } from '../../../../guest/tracks/audit/probe.ts';
import { decodeCanonical } from '../../../../guest/wire/canonical.ts';

const limits = {
  nano_cpus: 1e9,
  memory_bytes: 2 ** 31,
  storage_bytes: 2 ** 28,
  cpu_budget_ms: 8000,
  wall_budget_ms: 24_000,
};

describe('a probe', () => {
  it('is 16 hex digits of name and 32 of content, and never the same', () => {
    const probes = Array.from({ length: 100 }, newProbe);
    for (const { path, content } of probes) {
      expect(path).toMatch(/^\/task\/workspace\/\.probe_[0-9a-f]{16}$/);
      expect(content).toMatch(/^[0-9a-f]{32}$/);
    }
    expect(new Set(probes.map(({ path }) => path)).size).toBe(100);
    expect(new Set(probes.map(({ content }) => content)).size).toBe(100);
  });

  const probe = { path: '/task/workspace/.probe_0123456789abcdef', content: '0123456789abcdef'.repeat(2) };
  it.each([
    ['its bytes', probe.content, true],
    ['a newline after them', `${probe.content}\n`, false],
    ['one digit less', probe.content.slice(1), false],
    ['upper case', probe.content.toUpperCase(), false],
    ['another content', 'f'.repeat(32), false],
    ['nothing in it', '', false],
    ['UTF-16', Buffer.from(probe.content, 'utf16le'), false],
    ['bytes that are not UTF-8', Buffer.alloc(32, 0xff), false],
  ])('is alive with %s: %s', (_, found, expected) => {
    expect(isAlive(probe, Buffer.from(found))).toBe(expected);
  });

  it('is dead without a file, and is read with one byte to spare', () => {
    expect(isAlive(probe, null)).toBe(false);
    expect(MAX_PROBE_BYTES).toBe(33);
  });
});

describe('what a rep is given', () => {
  const probe = newProbe();

  it('is told where things are and how much it may use, and nothing else', () => {
    expect(decodeCanonical(contextJson('skills', limits, probe), 4096)).toEqual({
      schema_version: 1,
      track: 'skills',
      artifact: '/task/artifact',
      workspace: '/task/workspace',
      result: '/task/result.json',
      probe,
      budgets: { cpu_ms: 8000, wall_ms: 24_000 },
    });
  });

  it('finds the artifact, its context and an empty workspace', () => {
    const audited = [
      { path: 'environment/artifact/SKILL.md', bytes: Buffer.from('s'), executable: false },
      { path: 'environment/artifact/scripts/run.sh', bytes: Buffer.from('r'), executable: true },
    ];
    const files = repFiles(audited, Buffer.from('{}'));
    expect(files.map(({ path, executable }) => [path, executable])).toEqual([
      ['task/artifact/SKILL.md', false],
      ['task/artifact/scripts/run.sh', true],
      ['task/context.json', false],
      ['task/workspace/', false],
    ]);
  });
});
