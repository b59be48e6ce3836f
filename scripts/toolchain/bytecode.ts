import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runTool } from './run.ts';
import type { ToolFile } from './tool-file.ts';

const REMEDY = 'The toolchain is built on linux/amd64: its own Python compiles its own modules.';
const COMPILE = join(import.meta.dirname, 'compile.py');

/**
 * The bytecode of every Python file, by the volume's own Python: a read-only volume cannot keep any at run time.
 * Nothing of the building machine is in it, neither a time nor a folder.
 * @throws toolchain_unavailable
 */
export function bytecodeOf(files: readonly ToolFile[]): ToolFile[] {
  const root = mkdtempSync(join(tmpdir(), 'bytecode-'));
  try {
    for (const { path, mode, bytes } of files) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), bytes, { mode });
    }
    const at = (path: string) => join(root, 'runtime', path);
    const python = ['--inhibit-cache', '--library-path', at('lib'), '--argv0', at('bin/python3')];
    const listed = runTool(
      at('lib/ld-linux-x86-64.so.2'),
      [...python, at('bin/python3.13'), '-s', '-S', '-B', COMPILE, root],
      // The order of a set of names would follow the seed.
      { cwd: root, remedy: REMEDY, timeoutMs: 600_000, env: { PYTHONHASHSEED: '0' } },
    );
    const compiled = listed.split('\n').filter((path) => path !== '');
    return compiled.map((path) => ({ path, mode: 0o644, bytes: readFileSync(join(root, path)) }));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
