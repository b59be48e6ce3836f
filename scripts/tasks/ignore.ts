/** What a task package leaves out when its folder has no .gitignore (spec/05). */
export const DEFAULT_IGNORE = '__pycache__/\n*.pyc\n.DS_Store\n*.swp\n*.swo\n*~\n';

interface Rule {
  matches: RegExp;
  ignores: boolean;
}

function translate(pattern: string): string {
  let body = '';
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i] ?? '';
    const rest = pattern.slice(i);
    const set = /^\[(!?)((?:\\.|[^\]\\])(?:\\.|[^\]\\])*)\]/.exec(rest);
    if (rest.startsWith('/**/')) {
      body += '/(?:.*/)?';
      i += 3;
    } else if (rest === '/**') {
      body += '/.*';
      i += 2;
    } else if (i === 0 && rest.startsWith('**/')) {
      body += '(?:.*/)?';
      i += 2;
    } else if (set) {
      body += `[${set[1] ? '^' : ''}${(set[2] ?? '').replaceAll('[', '\\[')}]`;
      i += set[0].length - 1;
    } else if (c === '*') body += '[^/]*';
    else if (c === '?') body += '[^/]';
    else {
      if (c === '\\' && i + 1 < pattern.length) i++;
      body += (pattern[i] ?? '').replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    }
  }
  return body;
}

function parseRule(line: string): Rule | null {
  let pattern = line.replace(/\r$/, '').replace(/(?<!\\) +$/, '');
  if (pattern === '' || pattern.startsWith('#')) return null;
  const ignores = !pattern.startsWith('!');
  if (!ignores) pattern = pattern.slice(1);
  const directoryOnly = pattern.endsWith('/');
  if (directoryOnly) pattern = pattern.slice(0, -1);
  const anchored = pattern.includes('/');
  if (pattern.startsWith('/')) pattern = pattern.slice(1);
  if (pattern === '') return null;
  // A pattern that names a directory covers every file below it.
  const source = `^${anchored ? '' : '(?:.*/)?'}${translate(pattern)}${directoryOnly ? '/.*' : '(?:/.*)?'}$`;
  return { matches: new RegExp(source, 's'), ignores };
}

/**
 * Reads gitignore patterns; the last one that matches a file decides.
 * @returns a test on a file's relative POSIX path.
 */
export function parseIgnore(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map(parseRule)
    .filter((rule) => rule !== null);
  return (path) => rules.findLast((rule) => rule.matches.test(path))?.ignores ?? false;
}
