import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Language as Grammar, Parser, type Tree } from 'web-tree-sitter';
import type { Language } from './language.ts';
import { nameIn, withNewlines } from './source.ts';
import type { Syntax } from './syntax.ts';

const require = createRequire(import.meta.url);
const WASM: Readonly<Record<Language, string>> = {
  python: 'tree-sitter-python/tree-sitter-python.wasm',
  javascript: 'tree-sitter-javascript/tree-sitter-javascript.wasm',
  typescript: 'tree-sitter-typescript/tree-sitter-typescript.wasm',
  tsx: 'tree-sitter-typescript/tree-sitter-tsx.wasm',
  shell: 'tree-sitter-bash/tree-sitter-bash.wasm',
};

const OPERATOR = /^(?:[+%=!<>|&*/^-]+|in|not in|is|is not)$/;
const IDENTIFIER = /identifier$/;
const MAX_HERE_DOCUMENTS = 500;
/** Beyond this a tree is not read: code of people is a tenth as deep. */
const MAX_DEPTH = 400;

/**
 * What is left of a package's analysis. Counted in steps, not in time, so that the same package gives the same
 * findings on every machine.
 */
export interface Budget {
  /** Steps of the parser (it reports one for about a hundred actions). */
  steps: number;
  nodes: number;
  /** UTF-16 units of source. */
  source: number;
  /** UTF-16 units of the texts that detectors read: a long one can stand in many places. */
  texts: number;
}

/** Enough for some 1 MiB of ordinary code. */
export const newBudget = (): Budget => ({
  steps: 60_000,
  nodes: 400_000,
  source: 1024 * 1024,
  texts: 8 * 1024 * 1024,
});

/** Copies the named nodes and the operators; null when the tree is too deep or has too many nodes. */
function copy(tree: Tree, language: Language, source: string, budget: Budget): Syntax | null {
  const cursor = tree.walk();
  const take = () => {
    budget.nodes -= 1;
    const children: Syntax[] = [];
    const type = cursor.nodeType;
    const text = source.slice(cursor.startIndex, cursor.endIndex);
    const node: Syntax = {
      type,
      field: cursor.currentFieldName,
      text: IDENTIFIER.test(type) ? nameIn(language, text) : text,
      line: cursor.startPosition.row + 1,
      children,
    };
    return { node, children };
  };
  try {
    const root = take();
    const open = [root];
    for (;;) {
      if (budget.nodes < 0 || open.length > MAX_DEPTH) return null;
      if (!cursor.gotoFirstChild()) {
        while (!cursor.gotoNextSibling()) {
          if (!cursor.gotoParent()) return root.node;
          open.pop();
          if (open.length === 0) return root.node;
        }
        open.pop();
      }
      const here = take();
      const parent = open.at(-1);
      const kept = cursor.nodeIsNamed || here.node.field !== null || OPERATOR.test(here.node.type);
      if (kept) parent?.children.push(here.node);
      open.push(here);
    }
  } finally {
    cursor.delete();
  }
}

export interface Parsed {
  root: Syntax;
  /** The grammar could not make sense of all of it. */
  hasError: boolean;
}

/** Parses source within a budget; null: over it. */
export type Parse = (language: Language, source: string, budget: Budget) => Parsed | null;

/**
 * The grammars' own scanners report no steps. The shell's takes time with the square of the open here-documents,
 * and for ever over control characters. A carriage return alone is a part of a word to a shell, and more to others.
 */
function isBeyondScanner(language: Language, source: string): boolean {
  if (language !== 'shell') return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return (source.match(/<</g)?.length ?? 0) > MAX_HERE_DOCUMENTS || /[\x00-\x08]|\r(?!\n)/.test(source);
}

/** Loads the grammars, all from packages of this image. */
export async function loadParse(): Promise<Parse> {
  await Parser.init();
  const grammars = new Map<Language, Grammar>();
  for (const [language, file] of Object.entries(WASM)) {
    grammars.set(language as Language, await Grammar.load(await readFile(require.resolve(file))));
  }
  return (language, text, budget) => {
    budget.source -= text.length;
    if (budget.source < 0 || isBeyondScanner(language, text)) return null;
    const source = withNewlines(language, text);
    const parser = new Parser();
    try {
      parser.setLanguage(grammars.get(language) ?? null);
      const tree = parser.parse(source, null, { progressCallback: () => --budget.steps < 0 });
      if (tree === null) return null;
      try {
        const { hasError } = tree.rootNode;
        const root = copy(tree, language, source, budget);
        return root && { root, hasError };
      } finally {
        tree.delete();
      }
    } finally {
      parser.delete();
    }
  };
}
