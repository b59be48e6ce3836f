import { describe, expect, it } from 'vitest';
import { bytecodeOfAll, requirementsOf } from '../../../scripts/toolchain/pythons.ts';
import type { Requirement } from '../../../scripts/toolchain/requirements.ts';
import { BASE_SELECTION, type Selection } from '../../../scripts/toolchain/select.ts';
import { packageFolder } from '../../../scripts/toolchain/wheel-files.ts';

const pin = (name: string, python: string | null): Requirement => ({
  name,
  version: '1',
  sha256: name,
  form: 'wheel',
  python,
});
const PURE = pin('pure', null);
const OWN = pin('both', null);
const OTHER = pin('both', '3.12');
const PINNED = [PURE, OWN, OTHER, pin('only', '3.12'), pin('more', null)];

function selection(own: readonly string[], other: readonly string[] | null): Selection {
  const keys = (names: readonly string[]) => new Set(names.map((name) => `${name}==1`));
  const otherWheels = new Map(other === null ? [] : [['3.12', keys(other)]]);
  return { ...BASE_SELECTION, wheels: keys(own), otherWheels };
}

describe('requirementsOf', () => {
  it('takes for each Python what was compiled for it, and what is pure once', () => {
    expect(requirementsOf(PINNED, selection(['pure', 'both'], ['pure', 'both']))).toEqual([PURE, OWN, OTHER]);
    expect(requirementsOf(PINNED, selection([], ['both', 'pure']))).toEqual([PURE, OTHER]);
    expect(requirementsOf(PINNED, selection(['both', 'pure'], null))).toEqual([PURE, OWN]);
  });

  it('has folders in which no Python finds what was compiled for the other', () => {
    expect([OWN, OTHER, PURE].map(packageFolder)).toEqual([
      'python/both-1/',
      'python3.12/both-1/',
      'python/pure-1/',
    ]);
  });
});

describe('bytecodeOfAll', () => {
  it('refuses a shared package with a module of another Python', () => {
    const path = 'python/pure-1/pure/x.cpython-312-x86_64-linux-gnu.so';
    const file = { path, mode: 0o644 as const, bytes: Buffer.alloc(0) };
    expect(() => bytecodeOfAll([], [file], [PURE], selection(['pure'], null))).toThrowError(
      expect.objectContaining({ code: 'toolchain_invalid', message: expect.stringContaining(path) }),
    );
  });
});
