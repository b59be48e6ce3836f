import { fromBase32, fromBase64, fromHex, inflate, rot13 } from './decode.ts';
import { unescapeAll } from './escapes.ts';
import type { Fact } from './facts.ts';
import { languageOfInterpreter } from './language.ts';
import { Names } from './names.ts';
import { child, type Syntax, walk } from './syntax.ts';
import { concat, mapTexts, textValue, UNKNOWN, type Value } from './value.ts';

const DOWNLOADERS = /^(?:curl|wget|aria2c|fetch)$/;
const WORDS = new Set([
  'word',
  'string',
  'raw_string',
  'ansi_c_string',
  'concatenation',
  'number',
  'extglob_pattern',
  'regex',
]);

/** Facts of one shell script. */
export function readShell(root: Syntax): Fact[] {
  const names = new Names();
  for (const node of walk(root)) declare(node, names);
  const reader = new ShellReader(names);
  const facts: Fact[] = [];
  for (const node of walk(root)) facts.push(...reader.factsOf(node));
  return facts;
}

function declare(node: Syntax, names: Names): void {
  if (node.type === 'variable_assignment') {
    const [name, value] = [child(node, 'name'), child(node, 'value')];
    if (!name || !value) return;
    if (node.text.startsWith(`${name.text}+=`)) names.append(name.text, value);
    else names.assign(name.text, value);
  } else if (node.type === 'for_statement') {
    const name = child(node, 'variable')?.text ?? '';
    for (const one of node.children) if (one.field === 'value') names.assign(name, one);
  }
}

const commandsOf = (pipeline: Syntax) => pipeline.children.filter(({ type }) => !/^\|&?$/.test(type));

/** What a filter makes of what comes through its pipe, for the filters that only decode. */
function filtered(words: readonly Value[], input: Value): Value {
  const text = words.map(({ texts }) => texts[0] ?? '').join(' ');
  const decoded = (how: (text: string) => string | null): Value => ({
    ...mapTexts(input, how),
    decoded: input.decoded || input.texts.length > 0,
  });
  if (/^(?:\S*\/)?base64 .*(?:-d|-D|--decode)/.test(text) || /^openssl (?:enc )?-?base64 .*-d/.test(text))
    return decoded(fromBase64);
  if (/^(?:\S*\/)?base32 .*-d/.test(text)) return decoded(fromBase32);
  if (/^xxd .*-r/.test(text)) return decoded(fromHex);
  if (/^(?:gunzip|gzip -\w*d|zcat)/.test(text)) return decoded(inflate);
  if (/^rev\b/.test(text))
    return { ...mapTexts(input, (one) => [...one.trimEnd()].reverse().join('')), decoded: true };
  if (/^tr /.test(text) && /A-Za-z|a-zA-Z/.test(text)) return decoded(rot13);
  if (/^(?:cat|tee|head|tail)\b/.test(text) && words.length <= 2) return input;
  return { ...UNKNOWN, decoded: input.decoded, downloaded: input.downloaded };
}

/** What a backslash leaves of the character behind it: a line that goes on leaves nothing. */
const unescaped = (_: string, c: string) => (c === '\n' ? '' : c);

/** The inside of double quotes. */
const unquoted = (text: string) => text.replaceAll(/\\([\\"$`\n])/g, unescaped);

class ShellReader {
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  factsOf(node: Syntax): Fact[] {
    const { line } = node;
    switch (node.type) {
      case 'comment':
        return [{ kind: 'prose', line, text: node.text }];
      case 'pipeline':
        return this.#pipeline(node);
      case 'command':
        return this.#command(node, null);
      case 'file_redirect':
        return [
          {
            kind: 'command',
            line,
            words: [textValue('>'), this.#folded(child(node, 'destination'))],
            input: null,
          },
        ];
      case 'redirected_statement':
        return this.#hereDocument(node);
      case 'test_command':
        return [...walk(node)]
          .filter(({ type }) => type === 'binary_expression')
          .map((one) => ({
            kind: 'compare',
            line: one.line,
            operands: [child(one, 'left'), child(one, 'right')].map((side) => this.#folded(side)),
          }));
      case 'case_item':
        return [
          {
            kind: 'compare',
            line,
            operands: node.children.filter(({ field }) => field === 'value').map(this.fold),
          },
        ];
      case 'variable_assignment': {
        const value = this.#folded(child(node, 'value'));
        return value.texts.length > 0 ? [{ kind: 'text', line, value }] : [];
      }
      default:
        return [];
    }
  }

  #words(node: Syntax): Value[] {
    return node.children
      .filter(({ field }) => field === 'name' || field === 'argument')
      .map((one) => this.fold(one.type === 'command_name' ? (one.children[0] ?? one) : one));
  }

  #command(node: Syntax, input: Value | null): Fact[] {
    const words = this.#words(node);
    const facts: Fact[] = [{ kind: 'command', line: node.line, words, input }];
    if (words[0]?.texts[0] === 'test')
      facts.push({ kind: 'compare', line: node.line, operands: words.slice(1) });
    facts.push(...this.#hereString(node, words));
    for (const value of words) {
      if (value.texts.length > 0) facts.push({ kind: 'text', line: node.line, value });
    }
    return facts;
  }

  /** `sh <<< CODE`. */
  #hereString(node: Syntax, words: readonly Value[]): Fact[] {
    const redirect = node.children.find(({ type }) => type === 'herestring_redirect');
    const text = redirect?.children.at(-1);
    return text ? [{ kind: 'command', line: node.line, words, input: this.fold(text) }] : [];
  }

  /** The last command of a pipe with what the ones before make; every command is also read by itself. */
  #pipeline(node: Syntax): Fact[] {
    const commands = commandsOf(node);
    const last = commands.at(-1);
    const output = this.#outputOf(commands.slice(0, -1));
    const command = last?.type === 'redirected_statement' ? child(last, 'body') : last;
    if (command?.type !== 'command' || output === null) return [];
    return [{ kind: 'command', line: node.line, words: this.#words(command), input: output }];
  }

  #outputOf(commands: readonly Syntax[]): Value | null {
    let output: Value | null = null;
    for (const one of commands) {
      if (one.type !== 'command') return output ?? UNKNOWN;
      output = this.#output(this.#words(one), output);
    }
    return output;
  }

  /** What a command prints, as far as it can be told. */
  #output(words: readonly Value[], input: Value | null): Value {
    const name = words[0]?.texts[0] ?? '';
    if (name === 'echo' || name === 'printf') {
      const args = words.slice(1).filter(({ texts }) => !/^-[neE]+$/.test(texts[0] ?? ''));
      const text = concat(args, ' ');
      return name === 'printf' || words.some(({ texts }) => /^-\w*e/.test(texts[0] ?? ''))
        ? { ...mapTexts(text, unescapeAll), decoded: false }
        : text;
    }
    if (DOWNLOADERS.test(name)) return { ...UNKNOWN, downloaded: true };
    return input === null ? UNKNOWN : filtered(words, input);
  }

  #hereDocument(node: Syntax): Fact[] {
    const command = child(node, 'body');
    const redirect = node.children.find(({ type }) => type === 'heredoc_redirect');
    if (!redirect) return [];
    const body = redirect.children.find(({ type }) => type === 'heredoc_body') ?? redirect.children.at(-1);
    if (!body) return [];
    const value = body.type === 'heredoc_body' ? textValue(body.text) : this.fold(body);
    const name = command?.type === 'command' ? (this.#words(command)[0]?.texts[0] ?? '') : '';
    const language = languageOfInterpreter(name);
    const [source] = value.texts;
    if (language && source !== undefined) return [{ kind: 'code', line: body.line, language, source }];
    return value.texts.length > 0 ? [{ kind: 'text', line: body.line, value }] : [];
  }

  #folded(node: Syntax | undefined): Value {
    return node ? this.fold(node) : UNKNOWN;
  }

  readonly fold = (node: Syntax): Value => this.#names.guarded(UNKNOWN, () => this.#fold(node));

  #fold(node: Syntax): Value {
    switch (node.type) {
      case 'word':
      case 'number':
        return textValue(node.text.replaceAll(/\\(.)/gs, unescaped));
      case 'raw_string':
        return textValue(node.text.slice(1, -1));
      case 'ansi_c_string':
        return textValue(unescapeAll(node.text.slice(2, -1)));
      case 'string':
        return this.#string(node);
      case 'concatenation':
        return concat(node.children.map(this.fold));
      case 'command_name':
        return this.#folded(node.children[0]);
      case 'simple_expansion':
      case 'expansion': {
        const name = node.children.find(({ type }) => type === 'variable_name');
        return name ? this.#names.valueOf(name.text, this.fold) : UNKNOWN;
      }
      case 'command_substitution':
      case 'process_substitution': {
        const [only] = node.children;
        return only?.type === 'pipeline'
          ? (this.#outputOf(commandsOf(only)) ?? UNKNOWN)
          : (this.#outputOf(node.children) ?? UNKNOWN);
      }
      case 'variable_assignment':
        return this.#folded(child(node, 'value'));
      default:
        return WORDS.has(node.type) ? textValue(node.text) : UNKNOWN;
    }
  }

  #string(node: Syntax): Value {
    if (node.children.every(({ type }) => type === 'string_content')) {
      return textValue(unquoted(node.text.slice(1, -1)));
    }
    return concat(
      node.children.map((one) =>
        one.type === 'string_content' ? textValue(unquoted(one.text)) : this.fold(one),
      ),
    );
  }
}
