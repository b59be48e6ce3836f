import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cpuTorch } from '../../../scripts/toolchain/cpu-torch.ts';
import { readElf } from '../../../scripts/toolchain/elf.ts';
import { standInLibrary } from '../../../scripts/toolchain/stand-in-library.ts';
import type { ToolFile } from '../../../scripts/toolchain/tool-file.ts';

const LIB = 'python/torch-2.7.0/torch/lib';
const file = (path: string, bytes: Buffer): ToolFile => ({ path, mode: 0o644, bytes });
const library = (soname: string) => standInLibrary(soname, [], new Set());
const node = readFileSync(process.execPath);
/** Node, as if it asked for CUDA's libraries beside those that it asks for. */
const asking = Buffer.from(node);
asking.write('libcudnn.so\0', asking.indexOf('libpthread.so.0\0'), 'latin1');

describe('cpuTorch', () => {
  it('returns the files of anything else as they are', () => {
    const files = [file('python/numpy-2.3.4/numpy/__init__.py', Buffer.from('1'))];
    expect(cpuTorch(files)).toEqual(files);
  });

  it("puts CUDA's runtime where torch looks for it, and leaves out the GPU's code", () => {
    const runtime = file(
      'python/nvidia-cuda-runtime-cu12-12.6.77/nvidia/cuda_runtime/lib/libcudart.so.12',
      library('libcudart.so.12'),
    );
    const own = file(`${LIB}/libtorch_cpu.so`, library('libtorch_cpu.so'));
    const gpu = file(`${LIB}/libtorch_cuda.so`, library('libtorch_cuda.so'));
    expect(cpuTorch([runtime, own, gpu])).toEqual([{ ...runtime, path: `${LIB}/libcudart.so.12` }, own]);
  });

  it("stands in for a library of CUDA's that is needed and not there, and for no other", () => {
    const files = cpuTorch([file(`${LIB}/libtorch_python.so`, asking)]);
    expect(files.map(({ path }) => path)).toEqual([`${LIB}/libtorch_python.so`, `${LIB}/libcudnn.so`]);
    expect(readElf(files[1]?.bytes ?? Buffer.alloc(0))?.soname).toBe('libcudnn.so');
  });
});
