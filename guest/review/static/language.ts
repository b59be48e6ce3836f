export type Language = 'python' | 'javascript' | 'typescript' | 'tsx' | 'shell';

const BY_EXTENSION: Readonly<Record<string, Language>> = {
  py: 'python',
  pyi: 'python',
  pyw: 'python',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'javascript',
  ts: 'typescript',
  mts: 'typescript',
  cts: 'typescript',
  tsx: 'tsx',
  sh: 'shell',
  bash: 'shell',
  ksh: 'shell',
  zsh: 'shell',
};
/** Text for people: its words are read for instructions to the reviewer, and for nothing else. */
const PROSE = new Set(['md', 'rst', 'txt', 'adoc']);
const SHEBANG = /^#!.*?\b(python[\d.]*|node|deno|bun|sh|bash|dash|zsh|ksh)\b/;
const PYTHON_START = /^(?:from [\w.]+ import |import [\w.]+)/m;

export function extensionOf(path: string): string {
  return /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
}

/** The language that an interpreter runs: `python3`, `/usr/bin/env node`, `bash`; null for anything else. */
export function languageOfInterpreter(program: string): Language | null {
  const name = program.split('/').at(-1) ?? '';
  if (/^(?:python|pypy)[\d.]*$/.test(name)) return 'python';
  if (/^(?:node|nodejs|deno|bun)$/.test(name)) return 'javascript';
  return /^(?:ba|da|z|k|a)?sh$/.test(name) ? 'shell' : null;
}

/** What a member's text is read as: code of a language, prose, or data. */
export function kindOf(path: string, text: string): Language | 'prose' | 'data' {
  const extension = extensionOf(path);
  const known = BY_EXTENSION[extension];
  if (known) return known;
  const shebang = languageOfInterpreter(SHEBANG.exec(text.slice(0, 256))?.[1] ?? '');
  if (shebang) return shebang;
  // Code can be run from a file of any name.
  if (PYTHON_START.test(text.slice(0, 65_536)) && extension !== 'md') return 'python';
  return PROSE.has(extension) ? 'prose' : 'data';
}
