import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readElf } from '../../../scripts/toolchain/elf.ts';
import { standInLibrary } from '../../../scripts/toolchain/stand-in-library.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TYPE = '_ZTIN4demo4TypeE';
const NAMES = ['demo_call', 'demo_place', TYPE, '_ZTVN4demo4TypeE'];
const build = (names: readonly string[]) => standInLibrary('libdemo.so.1', names, new Set(['demo_place']));
let file: string;

beforeAll(() => {
  file = join(scratchFolder(), 'libdemo.so.1');
  writeFileSync(file, build(NAMES));
});

/** Python loads the library as it would load an extension's: every name at once. */
function load(script: string) {
  const lines = `import ctypes, os, sys\nlibrary = ctypes.CDLL(sys.argv[1], os.RTLD_NOW)\n${script}`;
  return spawnSync('python3', ['-I', '-c', lines, file], { encoding: 'utf8' });
}

describe('standInLibrary', () => {
  it('is a shared object with that name, which needs nothing', () => {
    expect(readElf(build(NAMES))).toEqual({ interpreter: false, soname: 'libdemo.so.1', needed: [] });
  });

  it('has every name, and no other', () => {
    const script = `print([hasattr(library, name) for name in ${JSON.stringify([...NAMES, 'other'])}])`;
    expect(load(script).stdout).toBe('[True, True, True, True, False]\n');
    writeFileSync(`${file}.empty`, build([]));
    expect(load("print(hasattr(ctypes.CDLL(sys.argv[1] + '.empty'), 'demo_call'))").stdout).toBe('False\n');
  });

  it('ends a process that calls a function', () => {
    expect(load('library.demo_call()').signal).toBe('SIGILL');
  });

  it('gives type information its name, and a place that can be written to', () => {
    const script = `
info = (ctypes.c_void_p * 2).in_dll(library, '${TYPE}')
print(ctypes.string_at(info[1]).decode())
library.demo_place.restype = ctypes.POINTER(ctypes.c_void_p)
place = library.demo_place()
place[0] = 7
print(library.demo_place()[0])`;
    expect(load(script).stdout).toBe('N4demo4TypeE\n7\n');
  });

  it('is the same bytes for the same names, in whatever order', () => {
    expect(build([...NAMES].reverse()).equals(build([...NAMES, 'demo_call']))).toBe(true);
  });
});
