import { EvaluatorError } from '../../errors.ts';
import { PACKAGE_VERSION } from '../../wire/package-index.ts';
import { atLine, REQUIREMENTS_NAME } from './refuse.ts';

/** One pinned wheel of an agent's `requirements.txt`. */
export interface Requirement {
  /** Normalised: lower case, one `-` for every run of `-`, `_` and `.`. */
  name: string;
  /** As it is written. */
  version: string;
  /** SHA-256, hex: any of these files will do. */
  hashes: readonly string[];
  /** 1-based, where it begins. */
  line: number;
}

const MAX_BYTES = 256 * 1024;
const MAX_REQUIREMENTS = 256;
const MAX_HASHES = 256;

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
const HASH = /^--hash=sha256:([0-9a-f]{64})$/;
const REMEDY = 'write NAME==VERSION --hash=sha256:HEX, as `pip-compile --generate-hashes` does';

/** The one spelling of a project's name. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
}

interface LogicalLine {
  text: string;
  line: number;
}

/** Lines with their continuations joined, comments and blank ones left out. */
function logicalLines(text: string): LogicalLine[] {
  const lines: LogicalLine[] = [];
  let parts: string[] = [];
  let line = 1;
  for (const [i, raw] of text.split('\n').entries()) {
    if (parts.length === 0) line = i + 1;
    // A comment ends a line, a continued one too.
    const physical = raw.replace(/\r$/, '').replace(/(?:^|[ \t])#.*$/, '');
    parts.push(physical.replace(/\\$/, ' '));
    if (physical.endsWith('\\')) continue;
    const joined = parts.join('');
    if (joined.trim() !== '') lines.push({ text: joined, line });
    parts = [];
  }
  if (parts.length > 0) throw atLine('requirements_invalid', line, 'ends with a continuation of nothing');
  return lines;
}

function whyNot(pin: string): string {
  if (pin.startsWith('-')) return `the option ${pin} is not taken; ${REMEDY}`;
  if (/[@:/\\]/.test(pin)) return `a URL or path is not taken; ${REMEDY}`;
  if (pin.includes('[')) return `extras are not taken: leave [...] out and pin what it brings; ${REMEDY}`;
  if (pin.includes('*')) return `a pattern is no version; ${REMEDY}`;
  return `not pinned to one version; ${REMEDY}`;
}

function parseLine({ text, line }: LogicalLine): Requirement {
  const refuse = (what: string) => atLine('requirements_invalid', line, what);
  const [pin = '', ...options] = text.trim().split(/[ \t]+/);
  const [name = '', version = '', ...more] = pin.split('==');
  if (more.length > 0 || !NAME.test(name) || !PACKAGE_VERSION.test(version)) throw refuse(whyNot(pin));
  const hashes = options.map((option) => {
    const hash = HASH.exec(option)?.[1];
    if (hash === undefined) throw refuse(`${option} is not taken; ${REMEDY}`);
    return hash;
  });
  if (hashes.length === 0) throw refuse(`${pin} has no hash; ${REMEDY}`);
  if (hashes.length > MAX_HASHES) throw refuse(`${pin} has more than ${MAX_HASHES} hashes`);
  return { name: normalizeName(name), version, hashes: [...new Set(hashes)], line };
}

/**
 * Reads an agent's `requirements.txt`: pins with hashes, comments, continuation lines, and nothing else of
 * what pip would take: no ranges, extras, markers, options, URLs.
 * @throws requirements_invalid, with the line at fault.
 */
export function parseRequirements(bytes: Uint8Array): Requirement[] {
  if (bytes.byteLength > MAX_BYTES)
    throw new EvaluatorError('requirements_invalid', `${REQUIREMENTS_NAME}: larger than ${MAX_BYTES} bytes`);
  const text = Buffer.from(bytes).toString('latin1');
  const odd = /[^\t\n\r\x20-\x7e]/.exec(text);
  if (odd) {
    const line = text.slice(0, odd.index).split('\n').length;
    throw atLine('requirements_invalid', line, 'a character that is not printable ASCII');
  }
  const requirements = logicalLines(text).map(parseLine);
  if (requirements.length > MAX_REQUIREMENTS)
    throw atLine(
      'requirements_invalid',
      requirements[MAX_REQUIREMENTS]?.line ?? 0,
      `more than ${MAX_REQUIREMENTS} packages`,
    );
  const seen = new Map<string, number>();
  for (const { name, line } of requirements) {
    const before = seen.get(name);
    if (before !== undefined)
      throw atLine('requirements_invalid', line, `${name} is there twice, first in line ${before}`);
    seen.set(name, line);
  }
  return requirements;
}

/** @throws dependency_not_listed, with the line at fault. */
export function verifyListed(requirements: readonly Requirement[], names: readonly string[]): void {
  const listed = new Set(names);
  const foreign = requirements.find(({ name }) => !listed.has(name));
  if (foreign)
    throw atLine(
      'dependency_not_listed',
      foreign.line,
      `${foreign.name} is not on the mechanism's list of packages; do without it, or ask the challenge to list it`,
    );
}
