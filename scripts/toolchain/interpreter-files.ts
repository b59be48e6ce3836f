import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { readVerified, sha256Hex, writeAtomic } from './cache.ts';
import type { DebFiles } from './deb.ts';
import type { Interpreter } from './interpreters.ts';
import { runTool } from './run.ts';
import type { ToolFile } from './tool-file.ts';
import { unzip } from './unzip.ts';

const PLATFORM = /^(?:[^/]+\/)*linux-x86_64\//;
const OTHERS = /(?!)/;
const LIBRARY = /^lib[^/]+\.so[^/]*$/;

/**
 * What an interpreter's artifact holds, by the paths at which Debian has such files: as one more package.
 * @throws toolchain_unavailable, toolchain_invalid
 */
export async function interpreterFiles(interpreter: Interpreter, cache: string): Promise<DebFiles> {
  const files = await unzip(fetchArtifact(interpreter, cache), interpreter.artifact, OTHERS);
  return new Map(
    files.flatMap(({ path, bytes }) => {
      const rest = PLATFORM.test(path) ? path.replace(PLATFORM, '') : '';
      if (LIBRARY.test(rest)) return [[`usr/lib/x86_64-linux-gnu/${rest}`, { bytes, mode: 0o644 }]];
      return /^(bin|lib)\//.test(rest) ? [[`usr/${rest}`, { bytes, mode: 0o644 }]] : [];
    }),
  );
}

/** The artifact's bytes: from the cache, or else by the machine's Maven. @throws toolchain_unavailable */
function fetchArtifact(interpreter: Interpreter, cache: string): Buffer {
  const { python, artifact, sha256 } = interpreter;
  const file = join(cache, 'interpreters', `${sha256}.jar`);
  const cached = readVerified(file, sha256);
  if (cached !== undefined) return cached;
  const remedy = `Packing Python ${python}, which a task asks for, needs mvn (Debian: maven) and a Maven repository once; afterwards its cache is enough.`;
  const folder = mkdtempSync(join(tmpdir(), 'interpreter-'));
  try {
    const copied = join(folder, 'copied');
    const options = ['--batch-mode', '--quiet', `-Dartifact=${artifact}`, `-DoutputDirectory=${copied}`];
    runTool('mvn', ['dependency:copy', ...options], { cwd: folder, remedy, timeoutMs: 900_000 });
    for (const name of readdirSync(copied)) {
      const bytes = readFileSync(join(copied, name));
      if (sha256Hex(bytes) !== sha256) continue;
      writeAtomic(file, bytes);
      return bytes;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  throw new EvaluatorError(
    'toolchain_unavailable',
    `${artifact} is served with another hash than is pinned.`,
  );
}

/** Where an interpreter has its programs and its library, below the volume's root. */
export function interpreterFolder(python: string): string {
  return `runtime/python${python}/`;
}

/** How it is started, and what it does first: as the volume's own, whose sitecustomize.py is given. */
export function interpreterShims({ python }: Interpreter, sitecustomize: Buffer): ToolFile[] {
  const folder = interpreterFolder(python);
  const start = [
    '#!/opt/evaluator/busybox sh',
    '. /opt/evaluator/front/lib/runtime.sh',
    `VERIFIER_FRONT_PYTHON=${python}`,
    'own_python $RUNTIME/bin/python3 "$@"',
  ];
  return [
    ...['python', 'python3', `python${python}`].map((name): ToolFile => {
      return { path: `${folder}bin/${name}`, mode: 0o755, bytes: Buffer.from(`${start.join('\n')}\n`) };
    }),
    { path: `${folder}lib/python${python}/sitecustomize.py`, mode: 0o644, bytes: sitecustomize },
  ];
}
