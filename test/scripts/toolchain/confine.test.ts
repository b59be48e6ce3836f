import { describe, expect, it } from 'vitest';
import { BUILT_AT, confine } from '../../../scripts/toolchain/confine.ts';

const LOADER = [
  '/etc/ld.so.preload',
  '/etc/ld.so.cache',
  '/lib/x86_64-linux-gnu/',
  '/usr/lib/x86_64-linux-gnu/',
  '/lib/',
  '/usr/lib/',
];
const library = (strings: readonly string[]) => Buffer.from(`\0${strings.join('\0')}\0`, 'latin1');

describe('confine', () => {
  it('overwrites each path, in the same length, by one that no container can have', () => {
    const confined = confine('ld-linux-x86-64.so.2', library([...LOADER, '/lib64/ld.so', '/lib/']));
    expect(confined.toString('latin1').split('\0').slice(1, -1)).toEqual([
      '/sys/ld.so.preload',
      '/sys/ld.so.cache',
      '/sys/x86_64-linux-gnu/',
      '/sys/lib/x86_64-linux-gnu/',
      '/sys/',
      '/sys/lib/',
      '/lib64/ld.so',
      '/sys/',
    ]);
  });

  it('takes a compiler its own folders, where specs could name programs', () => {
    const strings = [
      '/usr/lib/gcc/',
      '/usr/libexec/gcc/',
      '/usr/bin/',
      'H\xb8/usr/libH\x8d\\$',
      'H\xc7/usr/libH',
    ];
    const confined = confine('gcc', library(strings));
    expect(confined.toString('latin1').split('\0').slice(1, -1)).toEqual([
      '/sys/lib/gcc/',
      '/sys/libexec/gcc/',
      '/usr/bin/',
      // movabs, by which gcc writes the path of the machine's specs.
      'H\xb8/sys/libH\x8d\\$',
      'H\xc7/usr/libH',
    ]);
    expect(() => confine('gcc', library(strings.slice(0, 3)))).toThrowError(
      expect.objectContaining({ code: 'toolchain_invalid', message: expect.stringContaining('/usr/lib:') }),
    );
  });

  it('overwrites a longer first folder whole', () => {
    const confined = confine('libpython3.12.so.1.0', library([BUILT_AT, `${BUILT_AT}/include`]));
    expect(confined.toString('latin1').split('\0').slice(1, -1)).toEqual([
      BUILT_AT.replace('/home', '/sys/'),
      `${BUILT_AT}/include`,
    ]);
  });

  it('refuses a library whose paths are no longer known', () => {
    expect(() => confine('ld-linux-x86-64.so.2', library(LOADER.slice(1)))).toThrowError(
      expect.objectContaining({
        code: 'toolchain_invalid',
        message: expect.stringContaining('/etc/ld.so.preload'),
      }),
    );
  });

  it('leaves every other library as it is', () => {
    const bytes = library(LOADER);
    expect(confine('libz.so.1', bytes)).toBe(bytes);
  });
});
