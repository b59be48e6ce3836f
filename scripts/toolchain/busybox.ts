import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { writeAtomic } from './cache.ts';
import { runTool } from './run.ts';

const INSTALLED = '/bin/busybox';
const REMEDY =
  'The tools volume needs a static busybox: install the Debian package busybox-static (apt-get install busybox-static), or run apt-get update so that it can be downloaded.';

/**
 * Debian's static busybox: the one installed, else the cached one, else the package, unpacked and not installed.
 * @throws toolchain_unavailable when there is none, toolchain_invalid when it is no static amd64 executable.
 */
export function staticBusybox(cache: string): Buffer {
  if (existsSync(INSTALLED)) {
    const bytes = readFileSync(INSTALLED);
    // The package busybox puts a dynamic one at the same path: that one would not start in another image.
    if (isStaticElf(bytes)) return bytes;
  }
  const cached = join(cache, 'busybox');
  if (!existsSync(cached)) writeAtomic(cached, downloadBusybox());
  const bytes = readFileSync(cached);
  if (!isStaticElf(bytes)) {
    throw new EvaluatorError('toolchain_invalid', `${cached} is no static amd64 executable: remove it.`);
  }
  return bytes;
}

function downloadBusybox(): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'busybox-'));
  try {
    runTool('apt-get', ['download', 'busybox-static'], { cwd: dir, remedy: REMEDY, timeoutMs: 120_000 });
    const deb = readdirSync(dir).find((name) => name.endsWith('.deb'));
    if (!deb) throw new EvaluatorError('toolchain_unavailable', `apt-get left no package. ${REMEDY}`);
    runTool('dpkg-deb', ['-x', deb, 'root'], { cwd: dir, remedy: REMEDY, timeoutMs: 60_000 });
    const found = ['bin/busybox', 'usr/bin/busybox'].map((path) => join(dir, 'root', path)).find(existsSync);
    if (!found) throw new EvaluatorError('toolchain_invalid', `${deb} holds no bin/busybox.`);
    return readFileSync(found);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const EM_X86_64 = 62;
const PT_INTERP = 3;

/** True for an x86-64 ELF executable that asks for no loader, so that it starts in any image. */
export function isStaticElf(bytes: Buffer): boolean {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2) return false;
  if (bytes.readUInt16LE(18) !== EM_X86_64) return false;
  const table = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const count = bytes.readUInt16LE(56);
  if (size < 56 || table + size * count > bytes.length) return false;
  for (let i = 0; i < count; i++) {
    if (bytes.readUInt32LE(table + i * size) === PT_INTERP) return false;
  }
  return true;
}
