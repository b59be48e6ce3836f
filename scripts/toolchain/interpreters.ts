import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';

/** The Python of every volume. */
export const OWN_PYTHON = '3.13';

/** A Python that a volume has beside its own when a task asks for it. */
export type Interpreter = {
  /** As scripts ask for it: `3.12`. */
  python: string;
  /** `3.12.1`. */
  version: string;
  /** Maven coordinates. */
  artifact: string;
  /** Of the artifact, lower-case hex. */
  sha256: string;
  /** Of debian.lock, with its libraries; its recipe has the same name. */
  group: string;
};

const LINE = /^(\d+\.\d+)(\.\d+) ([\w.-]+(?::[\w.-]+){4}) ([0-9a-f]{64})$/;

/**
 * Reads interpreters.lock: `version artifact sha256` lines, `#` comments, one version of each Python.
 * @throws toolchain_invalid with the line number.
 */
export function parseInterpreters(text: string): Interpreter[] {
  const found: Interpreter[] = [];
  text.split('\n').forEach((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) return;
    const [, python = '', patch = '', artifact = '', sha256 = ''] = LINE.exec(line) ?? [];
    if (python === '') throw invalid(index, `expected "version artifact sha256", found "${line}"`);
    if (python === OWN_PYTHON || found.some((one) => one.python === python))
      throw invalid(index, `Python ${python} comes twice`);
    found.push({ python, version: `${python}${patch}`, artifact, sha256, group: `python${python}` });
  });
  return found;
}

/** @throws toolchain_invalid */
export function readInterpreters(): Interpreter[] {
  return parseInterpreters(
    readFileSync(join(import.meta.dirname, '../../guest/tools/interpreters.lock'), 'utf8'),
  );
}

/**
 * Which Python answers a request, as the front's want_python has it: `3.13`, or the `python` of one of the others.
 * Null for one that is not served: never another instead.
 */
export function servedPython(request: string, others: readonly Interpreter[]): string | null {
  const wanted = request.replace(/^python/, '');
  if (/^3(\.13(\..*)?)?$/.test(wanted)) return OWN_PYTHON;
  return others.find(({ python, version }) => wanted === python || wanted === version)?.python ?? null;
}

function invalid(index: number, problem: string): EvaluatorError {
  return new EvaluatorError('toolchain_invalid', `interpreters.lock line ${index + 1}: ${problem}`);
}
