import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isStaticElf, readElf } from '../../../scripts/toolchain/elf.ts';

const NODE = readFileSync(process.execPath);

describe('readElf', () => {
  it('reads what a dynamic executable asks for', () => {
    const elf = readElf(NODE);
    expect(elf?.interpreter).toBe(true);
    expect(elf?.needed).toContain('libc.so.6');
    expect(isStaticElf(NODE)).toBe(false);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a script', Buffer.from('#!/bin/sh\n'.padEnd(100))],
    ['a file that ends in its header', NODE.subarray(0, 60)],
    ['a file that ends before its segments', NODE.subarray(0, 4096)],
    [
      'an executable of another machine',
      Buffer.concat([NODE.subarray(0, 18), Buffer.from([183, 0]), NODE.subarray(20)]),
    ],
  ])('is null for %s', (_, bytes) => {
    expect(readElf(bytes)).toBeNull();
    expect(isStaticElf(bytes)).toBe(false);
  });
});
