import { AGENT_MANIFEST_NAME, parseAgentManifest } from '../../agent/manifest.ts';
import type { FindingCode } from '../../wire/review-decision.ts';
import type { Detector, Knowledge } from './detect/context.ts';
import { detectExecution } from './detect/execution.ts';
import { detectFragments, fragmentDigest } from './detect/fragments.ts';
import { detectIdentity } from './detect/identity.ts';
import { addressesReviewer, detectInjection } from './detect/injection.ts';
import { detectNetwork } from './detect/network.ts';
import { detectPaths } from './detect/paths.ts';
import { detectSecrets, hasCredential } from './detect/secrets.ts';
import { insideOf } from './embedded.ts';
import type { Fact } from './facts.ts';
import { readJavaScript } from './javascript.ts';
import { kindOf, type Language } from './language.ts';
import type { Budget, Parse } from './parser.ts';
import { mentionedPath } from './protected.ts';
import { readPython } from './python.ts';
import { readShell } from './shell.ts';
import { isRecoded, linesOf } from './source.ts';
import type { Syntax } from './syntax.ts';
import { textsOf, textValue } from './value.ts';

const DETECTORS: readonly Detector[] = [
  detectPaths,
  detectExecution,
  detectIdentity,
  detectFragments,
  detectNetwork,
  detectSecrets,
  detectInjection,
];
/** Code in code in code. */
const MAX_NESTING = 4;
const MAX_FACTS = 200_000;
/** A line of data or prose is read this far; the rest is for the model, and truncated there. */
const MAX_LINE = 262_144;

/** A finding of one member, by line. */
export interface Found {
  code: FindingCode;
  line: number;
}

function read(language: Language, root: Syntax): Fact[] {
  if (language === 'python') return readPython(root);
  return language === 'shell' ? readShell(root) : readJavaScript(root);
}

const HIDDEN_FROM_ROOT = /^(?:\.\/)?(?:tests|logs\/verifier)(?:\/|$)/;

/** After `cd /` the hidden folders have relative names too. */
function relativeToRoot(facts: readonly Fact[]): Found[] {
  const goesThere = facts.some((fact) => {
    if (fact.kind === 'command') return fact.words[0]?.texts[0] === 'cd' && fact.words[1]?.texts[0] === '/';
    return fact.kind === 'call' && /(?:^|\.)chdir$/.test(fact.callee) && fact.args[0]?.texts[0] === '/';
  });
  if (!goesThere) return [];
  return facts.flatMap((fact): Found[] => {
    if (fact.kind !== 'text' || !textsOf(fact.value).some((text) => HIDDEN_FROM_ROOT.test(text))) return [];
    return [{ code: 'mentions_protected_path', line: fact.line }];
  });
}

interface Reading {
  parse: Parse;
  budget: Budget;
  knowledge: Knowledge;
  found: Found[];
  facts: number;
  prose: Prose[];
}

/** Reads code and what is inside of it; `line` is where it begins, for code in a text of a file. */
function readCode(
  reading: Reading,
  language: Language,
  source: string,
  place: { depth: number; line: number | null },
): void {
  const at = (line: number) => place.line ?? line;
  const parsed = reading.parse(language, source, reading.budget);
  if (parsed === null) {
    reading.found.push({ code: 'unanalysable', line: place.line ?? 0 });
    return;
  }
  // A text of a file need not be code; a file that is must be understood.
  if (parsed.hasError && place.depth === 0) reading.found.push({ code: 'unanalysable', line: 0 });
  if (language === 'python' && isRecoded(source)) reading.found.push({ code: 'unanalysable', line: at(1) });
  readFacts(reading, language, read(language, parsed.root), place);
}

/** Reads facts, and what is inside of them. */
function readFacts(
  reading: Reading,
  language: Language,
  facts: readonly Fact[],
  place: { depth: number; line: number | null },
): void {
  const at = (line: number) => place.line ?? line;
  reading.found.push(...relativeToRoot(facts).map(({ code, line }) => ({ code, line: at(line) })));
  const queue = facts.map((fact) => ({ fact, depth: 0 }));
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const { fact } = next;
    reading.facts += 1;
    reading.budget.texts -= textSize(fact);
    if (reading.facts > MAX_FACTS || reading.budget.texts < 0) {
      reading.found.push({ code: 'unanalysable', line: 0 });
      return;
    }
    for (const detect of DETECTORS) {
      for (const code of detect(fact, reading.knowledge)) reading.found.push({ code, line: at(fact.line) });
    }
    if (fact.kind === 'prose') reading.prose.push({ line: at(fact.line), text: fact.text });
    if (fact.kind === 'code' && place.depth < MAX_NESTING) {
      readCode(reading, fact.language, fact.source, { depth: place.depth + 1, line: at(fact.line) });
    }
    if (next.depth < MAX_NESTING) {
      const depth = next.depth + 1;
      queue.push(...insideOf(fact, language).map((inner) => ({ fact: inner, depth })));
    }
  }
}

/** UTF-16 units of all texts in a fact. */
function textSize(fact: Fact): number {
  const values = (() => {
    switch (fact.kind) {
      case 'call':
        return [fact.receiver, ...fact.args];
      case 'command':
        return fact.words;
      case 'compare':
        return fact.operands;
      case 'prose':
      case 'code':
        return [];
      default:
        return [fact.value];
    }
  })();
  return values.flatMap((value) => textsOf(value)).reduce((sum, text) => sum + text.length, 0);
}

interface Prose {
  line: number;
  text: string;
}

/** Addresses that are spread over the comments of several lines, one right below the other. */
function addressesOverLines(prose: readonly Prose[]): Found[] {
  const blocks: Prose[] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const { line, text } of prose.toSorted((a, b) => a.line - b.line)) {
    const block = blocks.at(-1);
    if (block && line <= end + 1) block.text += `\n${text}`;
    else blocks.push({ line, text });
    end = line + linesOf(text).length - 1;
  }
  return blocks
    .filter(({ text }) => addressesReviewer(text))
    .map(({ line }) => ({ code: 'prompt_injection', line }));
}

/** One line in common is chance; several are a copy. */
const COPIED_LINES = 3;

/** Code that is itself a public solution, line by line. */
function copiedLines(text: string, { fragments }: Knowledge): Found[] {
  const lines = linesOf(text).map((line) => fragmentDigest(line.slice(0, MAX_LINE)));
  const known = new Set(lines.filter((digest) => digest !== null && fragments.has(digest)));
  if (known.size < COPIED_LINES) return [];
  return [{ code: 'hardcoded_answer', line: lines.findIndex((digest) => known.has(digest)) + 1 }];
}

/** Text that is not code: who it speaks to, what secrets it has, and for data what paths it names. */
function readText(reading: Reading, text: string, isData: boolean): void {
  linesOf(text).forEach((whole, i) => {
    const line = i + 1;
    const one = whole.slice(0, MAX_LINE);
    if (hasCredential(one)) reading.found.push({ code: 'embedded_credential', line });
    if (isData && mentionedPath(one)) reading.found.push({ code: 'mentions_protected_path', line });
    if (addressesReviewer(one)) reading.found.push({ code: 'prompt_injection', line });
  });
  // An address can be broken over lines.
  if (addressesReviewer(text) && !reading.found.some(({ code }) => code === 'prompt_injection')) {
    reading.found.push({ code: 'prompt_injection', line: 0 });
  }
}

/** The command of a package's manifest is what is run first, and can be all of it: `[sh, -c, CODE]`. */
function readManifest(reading: Reading, text: string): void {
  const words = commandOf(text);
  if (words === null) {
    reading.found.push({ code: 'unanalysable', line: 0 });
    return;
  }
  const values = words.map(textValue);
  const texts = values.map((value): Fact => ({ kind: 'text', line: 0, value }));
  const facts: Fact[] = [{ kind: 'command', line: 0, words: values, input: null }, ...texts];
  readFacts(reading, 'shell', facts, { depth: 0, line: null });
}

function commandOf(manifest: string): readonly string[] | null {
  try {
    return parseAgentManifest(Buffer.from(manifest)).command;
  } catch {
    return null;
  }
}

/**
 * The findings of one member of a package. Pure and deterministic: the budget counts steps, not time.
 * @param text the member as text, without NUL.
 */
export function analyse(
  member: { path: string; text: string },
  tools: { parse: Parse; budget: Budget; knowledge: Knowledge },
): Found[] {
  const reading: Reading = { ...tools, found: [], facts: 0, prose: [] };
  if (member.path === AGENT_MANIFEST_NAME) readManifest(reading, member.text);
  const kind = kindOf(member.path, member.text);
  if (kind === 'prose' || kind === 'data') readText(reading, member.text, kind === 'data');
  else {
    reading.found.push(...copiedLines(member.text, tools.knowledge));
    readCode(reading, kind, member.text, { depth: 0, line: null });
    reading.found.push(...addressesOverLines(reading.prose));
  }
  return reading.found;
}
