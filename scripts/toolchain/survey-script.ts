import { OWN_PYTHON, servedPython } from './interpreters.ts';
import { pythonsOf, type Requests, servedKey } from './select.ts';
import type { Served } from './served.ts';

/**
 * Reads a task's test.sh and Dockerfile as text and lists what the front would refuse, by the front's own rules.
 * A Debian package counts as there when the Dockerfile installs it.
 */
export function unservedOf(script: string, dockerfile: string, served: Served): string[] {
  const inImage = new Set(commandsOf(dockerfile).flatMap(aptPackages));
  const hasPython =
    /^FROM\s+python:/im.test(dockerfile) || [...inImage].some((name) => /^python3/.test(name));
  const others = served.others.map(({ interpreter }) => interpreter);
  const tables = [...pythonsOf(requestsOf(script), served)].map((python) =>
    python === OWN_PYTHON
      ? served.packages
      : (served.others.find((one) => one.interpreter.python === python)?.packages ?? new Map()),
  );
  const unserved = commandsOf(script).flatMap((words) => [
    ...aptPackages(words)
      .filter((name) => !served.apt.has(name) && !inImage.has(name))
      .map((name) => `apt ${name}`),
    ...pythonPackages(words)
      .filter((spec) => tables.every((table) => servedKey(spec, table) === null))
      .map((spec) => `python ${spec}`),
    ...interpreters(words)
      .filter((version) => servedPython(version, others) === null)
      .map((version) => `Python ${version}`),
    ...(isImagePip(words) && !hasPython ? ['an image with python3'] : []),
    ...addresses(words).map((url) => `address ${url}`),
  ]);
  return [...new Set(unserved)];
}

/** What a task's test.sh asks for, whether or not it is served. */
export function requestsOf(script: string): Requests {
  const commands = commandsOf(script);
  return {
    python: commands.flatMap(pythonPackages),
    apt: commands.flatMap(aptPackages),
    interpreters: commands.flatMap(interpreters),
  };
}

/** Shell text as simple commands of words: lines joined, comments dropped, split at `&&`, `||`, `|` and `;`. */
function commandsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => !line.trim().startsWith('#'))
    .join('\n')
    .replace(/\\\r?\n/g, ' ')
    .split(/\n|&&|\|\|?|;/)
    .map((command) => command.trim().split(/\s+/).map(unquote))
    .filter((words) => words[0] !== '');
}

function unquote(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, '$2');
}

function argumentsAfter(words: readonly string[], names: readonly string[], verb: string): string[] {
  const at = words.findIndex((word, index) => names.includes(word) && words.slice(index).includes(verb));
  return at < 0 ? [] : words.slice(words.indexOf(verb, at) + 1);
}

function aptPackages(words: readonly string[]): string[] {
  return argumentsAfter(words, ['apt-get', 'apt'], 'install')
    .filter((word) => /^[a-z0-9][a-z0-9.+-]*([=:/].*)?$/.test(word))
    .map((word) => word.replace(/[=:/].*$/, ''));
}

function pythonPackages(words: readonly string[]): string[] {
  const installed = [
    ...argumentsAfter(words, ['pip', 'pip3', 'uv'], 'install'),
    ...argumentsAfter(words, ['uv'], 'add'),
  ].filter((word) => !word.startsWith('-'));
  const asked = words.flatMap((word, index) => {
    if (words[0] !== 'uvx' && words[0] !== 'uv') return [];
    if (word === '-w' || word === '--with' || word === '--from') return [words[index + 1] ?? ''];
    return word.startsWith('--with=') ? [word.slice('--with='.length)] : [];
  });
  return [...installed, ...asked].flatMap((word) => word.split(','));
}

function interpreters(words: readonly string[]): string[] {
  if (words[0] !== 'uvx' && words[0] !== 'uv') return [];
  return words.flatMap((word, index) => {
    if (word === '-p' || word === '--python') return [words[index + 1] ?? ''];
    return word.startsWith('--python=') ? [word.slice('--python='.length)] : [];
  });
}

/** `pip install` goes into the image's own Python; `uv pip install` does not. */
function isImagePip(words: readonly string[]): boolean {
  return ['pip', 'pip3'].includes(words[0] ?? '') && words[1] === 'install';
}

const FETCHERS = ['curl', 'wget', 'git'];
const ANSWERED = /^https:\/\/astral\.sh\/uv\/(.+\/)?install\.sh$|^https?:\/\/(localhost|127\.)/;

function addresses(words: readonly string[]): string[] {
  if (!FETCHERS.includes(words[0] ?? '')) return [];
  return words.filter((word) => /^(https?|ftp|git|ssh):\/\//.test(word) && !ANSWERED.test(word));
}
