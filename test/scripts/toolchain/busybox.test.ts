import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStaticElf, staticBusybox } from '../../../scripts/toolchain/busybox.ts';
import { toolchainCache } from '../../../scripts/toolchain/cache.ts';

describe('isStaticElf', () => {
  it('tells the static shell from an executable that needs a loader', () => {
    expect(isStaticElf(staticBusybox(toolchainCache()))).toBe(true);
    expect(isStaticElf(readFileSync('/bin/sh'))).toBe(false);
  });

  it('answers for any bytes', () => {
    const elf = staticBusybox(toolchainCache()).subarray(0, 4096);
    fc.assert(
      fc.property(fc.nat(elf.length), fc.uint8Array({ maxLength: 64 }), (at, patch) => {
        const bytes = Buffer.concat([elf.subarray(0, at), patch]);
        expect(typeof isStaticElf(bytes)).toBe('boolean');
      }),
    );
  });
});
