import { decodedLayers } from './decode.ts';
import type { Fact } from './facts.ts';
import { type Language, languageOfInterpreter } from './language.ts';
import { textsOf, textValue, type Value } from './value.ts';

/** Functions that take a command line or a list of words. */
const RUNNERS =
  /(?:^|\.)(?:system|popen|run|call|check_call|check_output|getoutput|getstatusoutput|Popen|exec|execSync|spawn|spawnSync|execFile|execFileSync|execa|execaCommand|create_subprocess_shell|create_subprocess_exec|execl|execlp|execv|execvp|execve|execvpe|posix_spawn|sendline)$/;
const PYTHON_EVALUATORS = new Set(['exec', 'eval', 'compile', 'ast.parse']);
const JS_EVALUATORS = new Set(['eval', 'Function', 'vm.runInThisContext', 'vm.runInNewContext', 'vm.Script']);

/** Code of another language, or of this one, in the words of a command: `sh -c CODE`, `python3 -c CODE`. */
function codeOfWords(words: readonly Value[], line: number): Fact[] {
  const language = languageOfInterpreter(words[0]?.texts[0] ?? '');
  if (language === null) return [];
  const at = words.findIndex(({ texts }) => /^-(?:[a-z]*c|e|p|-eval)$/.test(texts[0] ?? ''));
  const sources = at < 0 ? [] : (words[at + 1]?.texts ?? []);
  return sources.map((source) => ({ kind: 'code', line, language, source }));
}

function piped(input: Value | null, words: readonly Value[], line: number): Fact[] {
  const language = languageOfInterpreter(words[0]?.texts[0] ?? '');
  if (language === null || input === null) return [];
  return input.texts.map((source) => ({ kind: 'code', line, language, source }));
}

function runCalls(args: readonly Value[], line: number): Fact[] {
  const [first] = args;
  if (first === undefined) return [];
  if (first.items !== null) {
    return [{ kind: 'command', line, words: first.items, input: null }];
  }
  const list = args[1]?.items;
  if (list) return [{ kind: 'command', line, words: [first, ...list], input: null }];
  return first.texts.map((source) => ({ kind: 'code', line, language: 'shell', source }));
}

/** What a fact has inside: code to read next, commands of a call, texts behind an encoding. */
export function insideOf(fact: Fact, language: Language): Fact[] {
  const { line } = fact;
  if (fact.kind === 'command') {
    const source = fact.words.slice(1).flatMap(({ texts }) => texts);
    const evaluated: Fact[] =
      fact.words[0]?.texts[0] === 'eval' && source.length > 0
        ? [{ kind: 'code', line, language: 'shell', source: source.join(' ') }]
        : [];
    return [...codeOfWords(fact.words, line), ...piped(fact.input, fact.words, line), ...evaluated];
  }
  if (fact.kind === 'call') {
    const evaluators = language === 'python' ? PYTHON_EVALUATORS : JS_EVALUATORS;
    if (evaluators.has(fact.callee)) {
      const sources = fact.args.flatMap(({ texts }) => texts);
      return sources.map((source) => ({ kind: 'code', line, language, source }));
    }
    return RUNNERS.test(fact.callee) ? runCalls(fact.args, line) : [];
  }
  if (fact.kind !== 'text') return [];
  return textsOf(fact.value)
    .flatMap(decodedLayers)
    .map((text) => ({ kind: 'text', line, value: { ...textValue(text), decoded: true } }));
}
