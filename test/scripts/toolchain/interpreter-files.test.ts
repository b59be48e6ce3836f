import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { zipFiles } from '../../../scripts/agent/zip-files.ts';
import { sha256Hex } from '../../../scripts/toolchain/cache.ts';
import { readFrom } from '../../../scripts/toolchain/deb.ts';
import { interpreterFiles, interpreterShims } from '../../../scripts/toolchain/interpreter-files.ts';
import { parseInterpreters } from '../../../scripts/toolchain/interpreters.ts';
import { scratchFolder } from '../../support/scratch.ts';

let folder: string;
let jar: Buffer;

const zip = (paths: readonly string[]) =>
  zipFiles(paths.map((path) => ({ path, bytes: Buffer.from(path), executable: false })));

beforeEach(async () => {
  folder = scratchFolder();
  vi.stubEnv('PATH', folder);
  jar = await zip([
    'META-INF/MANIFEST.MF',
    'org/demo/linux-x86_64/bin/python3.12',
    'org/demo/linux-x86_64/lib/python3.12/os.py',
    'org/demo/linux-x86_64/libpython3.12.so.1.0',
    'org/demo/linux-x86_64/share/man/x',
  ]);
  writeFileSync(join(folder, 'demo.jar'), jar);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const interpreter = (sha256: string) => {
  const [one] = parseInterpreters(`3.12.1 org.demo:cpython:1:jar:linux-x86_64 ${sha256}`);
  if (one === undefined) throw new Error('no interpreter');
  return one;
};

/** An mvn that puts the archive where it is told to, once. */
function installMaven(): void {
  const script = `#!/bin/sh
for word; do
  case $word in -DoutputDirectory=*) to=$(echo "$word" | /usr/bin/cut -d= -f2) ;; esac
done
/bin/mkdir -p "$to" && /bin/mv ${folder}/demo.jar "$to/"
`;
  writeFileSync(join(folder, 'mvn'), script);
  chmodSync(join(folder, 'mvn'), 0o755);
}

describe('interpreterFiles', () => {
  it('has the files of the artifact where Debian has such files, and asks for it once', async () => {
    installMaven();
    const cache = join(folder, 'cache');
    const files = await interpreterFiles(interpreter(sha256Hex(jar)), cache);
    expect([...files.keys()].sort()).toEqual([
      'usr/bin/python3.12',
      'usr/lib/python3.12/os.py',
      'usr/lib/x86_64-linux-gnu/libpython3.12.so.1.0',
    ]);
    expect(readFrom([files], 'usr/bin/python3.12')?.bytes.toString()).toBe(
      'org/demo/linux-x86_64/bin/python3.12',
    );
    expect(await interpreterFiles(interpreter(sha256Hex(jar)), cache)).toEqual(files);
  });

  it('does not take an artifact with another hash, from wherever', async () => {
    installMaven();
    const cache = join(folder, 'cache');
    const wanted = interpreter('a'.repeat(64));
    mkdirSync(join(cache, 'interpreters'), { recursive: true });
    writeFileSync(join(cache, 'interpreters', `${wanted.sha256}.jar`), jar);
    await expect(interpreterFiles(wanted, cache)).rejects.toMatchObject({
      code: 'toolchain_unavailable',
      message: expect.stringContaining(wanted.artifact),
    });
  });

  it('says what to install where the cache lacks it and there is no Maven', async () => {
    await expect(interpreterFiles(interpreter(sha256Hex(jar)), folder)).rejects.toMatchObject({
      code: 'toolchain_unavailable',
      message: expect.stringMatching(/mvn.*Debian: maven/),
    });
  });
});

describe('interpreterShims', () => {
  it('start a Python from its own folder, which has what the other does first', () => {
    const shims = interpreterShims(interpreter('a'.repeat(64)), Buffer.from('first'));
    expect(shims.map(({ path, mode }) => [path, mode])).toEqual([
      ['runtime/python3.12/bin/python', 0o755],
      ['runtime/python3.12/bin/python3', 0o755],
      ['runtime/python3.12/bin/python3.12', 0o755],
      ['runtime/python3.12/lib/python3.12/sitecustomize.py', 0o644],
    ]);
  });
});
