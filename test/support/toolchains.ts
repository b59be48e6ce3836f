import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { buildBaseToolchain } from '../../scripts/toolchain/build.ts';

/** The smallest volume, for a test.sh that runs pytest. */
export const buildPythonToolchain = (outFile: string) => buildBaseToolchain({ outFile });

const PYTHON = ['runtime/lib/python3.13', 'python'];

/** The smallest volume without its Python: all that a test.sh of shell alone runs, and half of the bytes. */
export async function buildShellToolchain(outFile: string): Promise<void> {
  await buildBaseToolchain({ outFile });
  await promisify(execFile)('tar', ['--delete', '--file', outFile, ...PYTHON]);
}
