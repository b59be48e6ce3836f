import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runTool } from './run.ts';
import type { ToolFile } from './tool-file.ts';

const REMEDY = 'The toolchain is built on linux/amd64: its own Pythons compile their own modules.';
const COMPILE = join(import.meta.dirname, 'compile.py');

/** A Python of the volume: its program, and the name by which it finds its library, below `runtime/`. */
export type Compiler = { program: string; self: string };

/**
 * The bytecode of every Python file, by a Python of the volume: a read-only volume cannot keep any at run time.
 * Nothing of the building machine is in it, neither a time nor a folder.
 * @throws toolchain_unavailable
 */
export function bytecodeOf(files: readonly ToolFile[], compiler: Compiler): ToolFile[] {
  const root = mkdtempSync(join(tmpdir(), 'bytecode-'));
  try {
    for (const { path, mode, bytes } of files) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), bytes, { mode });
    }
    const at = (path: string) => join(root, 'runtime', path);
    const python = ['--inhibit-cache', '--library-path', at('lib'), '--argv0', at(compiler.self)];
    const listed = runTool(
      at('lib/ld-linux-x86-64.so.2'),
      [...python, at(compiler.program), '-s', '-S', '-B', COMPILE, root],
      // The order of a set of names would follow the seed.
      { cwd: root, remedy: REMEDY, timeoutMs: 600_000, env: { PYTHONHASHSEED: '0' } },
    );
    const compiled = listed.split('\n').filter((path) => path !== '');
    return compiled.map((path) => ({ path, mode: 0o644, bytes: readFileSync(join(root, path)) }));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
