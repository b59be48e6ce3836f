import { describe, expect, it } from 'vitest';
import { fitOf, parseWheelName, type WheelTarget } from '../../../../guest/agent/dependencies/wheel-name.ts';

const RUNTIME: WheelTarget = { python: 'cpython', minor: 13, glibcMinor: 36 };
const ANY: WheelTarget = { python: 'any' };

function fitness(filename: string, target: WheelTarget): number | null {
  const name = parseWheelName(filename);
  return name === null ? null : fitOf(name, target);
}

describe('parseWheelName', () => {
  it('takes a name apart', () => {
    expect(
      parseWheelName(
        'Charset_Normalizer-3.4.1-1a-cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.whl',
      ),
    ).toEqual({
      project: 'charset-normalizer',
      version: '3.4.1',
      pythons: ['cp313'],
      abis: ['cp313'],
      platforms: ['manylinux2014_x86_64', 'manylinux_2_17_x86_64'],
    });
  });

  it.each([
    'x-1.tar.gz',
    'x-1-py3-none.whl',
    'x-1-py3-none-any.WHL',
    '../x-1-py3-none-any.whl',
    'x-1-py3-none-any.whl.asc',
    '',
  ])('finds none in %j', (filename) => expect(parseWheelName(filename)).toBeNull());
});

describe('fitOf', () => {
  it.each<[string, number | null, number | null]>([
    // [file, in the agent runtime, in a task's container]
    ['x-1-py3-none-any.whl', 0, 0],
    ['x-1-py2.py3-none-any.whl', 0, 0],
    ['x-1-py310-none-any.whl', 0, null],
    ['x-1-py314-none-any.whl', null, null],
    ['x-1-py2-none-any.whl', null, null],
    ['x-1-cp313-cp313-manylinux_2_17_x86_64.whl', 3, null],
    ['x-1-cp313-cp313-manylinux_2_28_x86_64.manylinux2014_x86_64.whl', 3, null],
    ['x-1-cp313-cp313-manylinux_2_40_x86_64.whl', null, null],
    ['x-1-cp39-abi3-manylinux_2_17_x86_64.whl', 2, null],
    ['x-1-cp314-abi3-manylinux_2_17_x86_64.whl', null, null],
    ['x-1-py3-none-manylinux2014_x86_64.whl', 1, null],
    ['x-1-cp312-cp312-manylinux_2_17_x86_64.whl', null, null],
    ['x-1-cp313-cp313t-manylinux_2_17_x86_64.whl', null, null],
    ['x-1-cp313-cp313-manylinux_2_17_aarch64.whl', null, null],
    ['x-1-cp313-cp313-musllinux_1_2_x86_64.whl', null, null],
    ['x-1-cp313-cp313-linux_x86_64.whl', null, null],
    ['x-1-cp313-cp313-win_amd64.whl', null, null],
    ['x-1-cp313-cp313-macosx_11_0_x86_64.whl', null, null],
    ['x-1-pp311-pypy311_pp73-manylinux_2_17_x86_64.whl', null, null],
  ])('%s: %j in a CPython 3.13, %j where the Python is not known', (filename, runtime, any) => {
    expect([fitness(filename, RUNTIME), fitness(filename, ANY)]).toEqual([runtime, any]);
  });
});
