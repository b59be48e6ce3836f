import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { packTar } from '../../guest/engine/tar.ts';

const run = promisify(execFile);

/** Where the engine under test listens. */
export const ENGINE_SOCKET = '/var/run/docker.sock';

/** The label key of everything that these tests create. */
export const TEST_LABEL = 'cvm-evaluator.test';

const TAG = 'cvm-evaluator-test/busybox:1';

/** A unix-domain name for one test's object. */
export function testName(): string {
  return `cvm-evaluator-test-${process.pid}-${Math.random().toString(36).slice(2, 10)}`;
}

/**
 * Makes, once per engine, an image of nothing but a static busybox (linked as /bin/sh too) and gives its id.
 * WORKDIR is /app; PATH is /bin. Needs Debian's busybox-static.
 */
export async function ensureTestImage(): Promise<string> {
  const known = await imageId();
  if (known !== null) return known;
  const busybox = ['/usr/bin/busybox', '/bin/busybox'].find(existsSync);
  if (busybox === undefined) throw new Error('install busybox-static: the test image is made of it');
  const bytes = readFileSync(busybox);
  const tar = packTar([
    { path: './', directory: true },
    { path: 'app', directory: true },
    { path: 'bin', directory: true },
    { path: 'bin/busybox', bytes, mode: 0o755 },
    { path: 'bin/sh', bytes: Buffer.from('#!/bin/busybox sh\nexec /bin/busybox sh "$@"\n'), mode: 0o755 },
    { path: 'etc', directory: true },
    { path: 'etc/passwd', bytes: Buffer.from('root:x:0:0:root:/root:/bin/sh\n'), mode: 0o644 },
    { path: 'etc/group', bytes: Buffer.from('root:x:0:\n'), mode: 0o644 },
    { path: 'logs', directory: true },
    { path: 'root', directory: true },
    { path: 'tmp', directory: true },
  ]);
  const changes = ['WORKDIR /app', 'ENV PATH=/bin', 'CMD ["/bin/busybox", "sh"]'];
  await dockerImport(tar, [...changes.flatMap((change) => ['--change', change]), '-', TAG]);
  const made = await imageId();
  if (made === null) throw new Error('the test image was imported, but the engine does not list it');
  return made;
}

async function imageId(): Promise<string | null> {
  try {
    const { stdout } = await run('docker', ['image', 'inspect', '--format', '{{.Id}}', TAG]);
    return stdout.trim();
  } catch {
    return null;
  }
}

function dockerImport(tar: Buffer, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('docker', ['import', ...args], { stdio: ['pipe', 'ignore', 'inherit'] });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`docker import ended with exit code ${code}`)),
    );
    child.stdin.end(tar);
  });
}
