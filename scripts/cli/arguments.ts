import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { EvaluatorError } from '../../guest/errors.ts';

/**
 * Reads a verb's options: every name must be known, nothing may be left over.
 * @param usage the verb's usage line, part of the message.
 * @throws usage.
 */
export function parseOptions<const T extends ParseArgsOptionsConfig>(
  argv: readonly string[],
  options: T,
  usage: string,
) {
  try {
    return parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('. ')[0] : String(cause);
    throw new EvaluatorError('usage', `${reason}\nusage: ${usage}`, { cause });
  }
}

/** The value of an option that must be given. @throws usage. */
export function required<T>(value: T | undefined, option: string, usage: string): T {
  if (value !== undefined) return value;
  throw new EvaluatorError('usage', `--${option} is missing\nusage: ${usage}`);
}

/**
 * Names separated by commas, over every time the option was given; none when it was not.
 * @throws usage when it was given and names nothing: `--tasks "$UNSET"` must not mean all tasks.
 */
export function nameList(values: readonly string[] | undefined): string[] {
  if (values === undefined) return [];
  const names = values.flatMap((value) => value.split(',')).filter((name) => name !== '');
  if (names.length > 0) return names;
  throw new EvaluatorError('usage', `${JSON.stringify(values.join(','))}: no name in a list of names (a,b)`);
}

/** `--from a b --x` as `--from a --from b --x`, so that a shell's `*` can follow the option. */
export function spreadOption(argv: readonly string[], option: string): string[] {
  let current = '';
  let isFirst = true;
  return argv.flatMap((argument) => {
    if (argument.startsWith('-')) {
      current = argument;
      isFirst = true;
      return [argument];
    }
    const repeated = current === option && !isFirst;
    isFirst = false;
    return repeated ? [option, argument] : [argument];
  });
}

/** Prints a verb's help; its exit code. */
export function printHelp(text: string): number {
  process.stdout.write(text);
  return 0;
}
