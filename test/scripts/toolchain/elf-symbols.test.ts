import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readSymbols } from '../../../scripts/toolchain/elf-symbols.ts';

describe('readSymbols', () => {
  it('reads what a program offers, and what it asks of others', () => {
    const { defined, open } = readSymbols(readFileSync(process.execPath));
    expect(defined).toContain('napi_create_object');
    expect(open).toContain('dlopen');
    expect(open).not.toContain('napi_create_object');
    // Weak: nobody has to have it.
    expect(open).not.toContain('__gmon_start__');
  });
});
