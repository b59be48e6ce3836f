import { languageOfInterpreter } from '../language.ts';
import { anyFlag, type Value } from '../value.ts';
import type { Detector } from './context.ts';

const EVALUATORS = new Set([
  'exec',
  'eval',
  'execfile',
  'Function',
  'code.interact',
  'vm.runInThisContext',
  'vm.runInNewContext',
  'vm.runInContext',
  'vm.Script',
  'runpy.run_path',
  'setTimeout',
]);
const CODE_LOADERS = new Set([
  'marshal.loads',
  'marshal.load',
  'pickle.loads',
  'cPickle.loads',
  'dill.loads',
  'types.CodeType',
]);
/** Words after which the shell or a language runs its input. */
const SHELL_EVALUATORS = new Set(['eval', 'source', '.', 'exec']);

const isKnown = ({ texts, items, number }: Value) => texts.length > 0 || items !== null || number !== null;

/** True for a command that runs what it is given on its standard input. */
function runsInput(words: readonly Value[]): boolean {
  const [name, ...args] = words.map(({ texts }) => texts[0] ?? '');
  if (name === 'sudo' || name === 'env') return runsInput(words.slice(1));
  if (languageOfInterpreter(name ?? '') === null) return false;
  return args.every((arg) => arg.startsWith('-') && arg !== '-c' && arg !== '-e');
}

/** Code that hides what it is until it runs. */
export const detectExecution: Detector = (fact) => {
  if (fact.kind === 'call') {
    const { callee, args } = fact;
    if (CODE_LOADERS.has(callee)) {
      return anyFlag(args, 'downloaded') ? ['downloads_and_executes'] : marshalled(callee, args);
    }
    if (!EVALUATORS.has(callee) || callee === 'setTimeout') return [];
    if (anyFlag(args, 'downloaded')) return ['downloads_and_executes'];
    if (anyFlag(args, 'decoded')) return ['executes_encoded_code'];
    const [code] = args;
    return code && !isKnown(code) ? ['executes_dynamic_code'] : [];
  }
  if (fact.kind !== 'command') return [];
  const [name, ...args] = fact.words;
  const evaluated = SHELL_EVALUATORS.has(name?.texts[0] ?? '') || takesCode(fact.words);
  const inputs = [...(fact.input && runsInput(fact.words) ? [fact.input] : []), ...(evaluated ? args : [])];
  if (anyFlag(inputs, 'downloaded')) return ['downloads_and_executes'];
  if (anyFlag(inputs, 'decoded')) return ['executes_encoded_code'];
  const isPiped = fact.input !== null && runsInput(fact.words);
  return isPiped && fact.input !== null && !isKnown(fact.input) ? ['executes_dynamic_code'] : [];
};

function takesCode(words: readonly Value[]): boolean {
  return languageOfInterpreter(words[0]?.texts[0] ?? '') !== null;
}

/** Marshalled code is never written by hand; a pickle is, unless it is a literal. */
function marshalled(callee: string, args: readonly Value[]): ReturnType<Detector> {
  if (args.some(isKnown) || anyFlag(args, 'decoded')) return ['executes_encoded_code'];
  return callee.startsWith('marshal') || callee === 'types.CodeType' ? ['executes_dynamic_code'] : [];
}
