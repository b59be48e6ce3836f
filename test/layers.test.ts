import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** design.md, "The house": what each place may import of the house; the first prefix that fits counts. */
const MAY_IMPORT: readonly (readonly [place: string, imports: readonly string[] | 'all'])[] = [
  ['guest/errors.ts', []],
  ['guest/wire/', []],
  ['guest/net/', []],
  ['guest/process/', []],
  ['guest/engine/', []],
  ['guest/consensus/', ['guest/wire/']],
  ['guest/attest/', ['guest/wire/']],
  ['guest/tasks/', ['guest/wire/']],
  ['guest/agent/', ['guest/wire/']],
  ['guest/agent-runtime/', []],
  ['guest/inference/proxy/', ['guest/net/', 'guest/wire/']],
  ['guest/inference/', ['guest/engine/', 'guest/net/', 'guest/wire/']],
  [
    'guest/trial/',
    [
      'guest/agent-runtime/',
      'guest/inference/',
      'guest/engine/',
      'guest/agent/',
      'guest/tasks/',
      'guest/wire/',
    ],
  ],
  ['guest/tracks/', ['guest/trial/', 'guest/engine/', 'guest/agent/', 'guest/tasks/', 'guest/wire/']],
  ['guest/golden/', ['guest/attest/', 'guest/tasks/', 'guest/wire/']],
  [
    'guest/stages/',
    [
      'guest/golden/',
      'guest/tracks/',
      'guest/trial/',
      'guest/attest/',
      'guest/consensus/',
      'guest/tasks/',
      'guest/agent/',
      'guest/inference/',
      'guest/engine/',
      'guest/net/',
      'guest/process/',
      'guest/wire/',
    ],
  ],
  ['guest/review/', ['guest/attest/', 'guest/agent/', 'guest/net/', 'guest/process/', 'guest/wire/']],
  ['guest/eval.ts', ['guest/stages/']],
  ['guest/review.ts', ['guest/review/']],
  ['challenge/', ['guest/wire/', 'guest/attest/', 'guest/consensus/', 'guest/tasks/', 'guest/agent/']],
  ['simulator/', ['guest/wire/', 'guest/attest/']],
  ['compose/', ['guest/wire/']],
  ['scripts/', 'all'],
];

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

function localImports(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map((match) =>
    relative(ROOT, join(ROOT, dirname(file), match[1] ?? '')),
  );
}

describe('import directions', () => {
  const files = ['guest', 'challenge', 'simulator', 'compose', 'scripts'].flatMap(sources);

  it('sees the sources', () => {
    expect(files.length).toBeGreaterThan(100);
    expect(localImports('guest/eval.ts')).toContain('guest/stages/emit.ts');
  });

  it.each(files)('%s imports only what lies below it', (file) => {
    const rule = MAY_IMPORT.find(([place]) => file.startsWith(place));
    expect(rule, `${file} has no place in the house`).toBeDefined();
    const [place, allowed] = rule ?? ['', []];
    if (allowed === 'all') return;
    const wrong = localImports(file).filter(
      (target) =>
        target !== 'guest/errors.ts' &&
        !target.startsWith(place) &&
        !allowed.some((below) => target.startsWith(below)),
    );
    expect(wrong).toEqual([]);
  });
});
