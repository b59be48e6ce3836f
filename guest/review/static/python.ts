import type { Fact } from './facts.ts';
import { resultOf } from './known-calls.ts';
import { Names, withoutGlobal } from './names.ts';
import { declare } from './python-names.ts';
import { foldBinary, foldReversed, foldString } from './python-text.ts';
import { child, type Syntax, walk } from './syntax.ts';
import { concat, listValue, mapTexts, numberValue, oneOf, UNKNOWN, type Value } from './value.ts';

const TEXTS = new Set(['string', 'concatenated_string', 'binary_operator', 'call', 'subscript']);
const NAMESPACES = /^(?:globals|locals|vars)\(\)$|(?:^|\.)(?:__dict__|__builtins__)$/;

/** Facts of one Python file. */
export function readPython(root: Syntax): Fact[] {
  const names = new Names();
  for (const node of walk(root)) declare(node, names);
  const reader = new PythonReader(names);
  const facts: Fact[] = [];
  const inside = new Set<Syntax>();
  for (const node of walk(root)) {
    // Parts of a text that was put together say nothing by themselves.
    if (inside.has(node)) for (const part of node.children) inside.add(part);
    facts.push(...reader.factsOf(node, inside));
  }
  return facts;
}

const isText = (value: Value) => value.texts.length > 0;

class PythonReader {
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  factsOf(node: Syntax, inside: Set<Syntax>): Fact[] {
    const { line } = node;
    switch (node.type) {
      case 'comment':
        return [{ kind: 'prose', line, text: node.text }];
      case 'expression_statement':
        return this.#docstring(node, inside);
      case 'comparison_operator':
        return [{ kind: 'compare', line, operands: node.children.map(this.fold) }];
      case 'case_pattern':
        return [{ kind: 'compare', line, operands: [...walk(node)].map(this.fold) }];
      case 'pair':
        return [{ kind: 'key', line, value: this.#folded(child(node, 'key')) }];
      case 'decorator':
        return this.#decorator(node);
      case 'call':
        return [...this.#call(node), ...this.#text(node, inside)];
      default:
        return this.#text(node, inside);
    }
  }

  /** A text, unless it is a part of one that was reported. */
  #text(node: Syntax, inside: Set<Syntax>): Fact[] {
    if (inside.has(node) || !TEXTS.has(node.type)) return [];
    const value = this.fold(node);
    if (!isText(value)) return [];
    for (const part of node.children) inside.add(part);
    return [{ kind: 'text', line: node.line, value }];
  }

  #docstring(node: Syntax, inside: Set<Syntax>): Fact[] {
    const [only] = node.children;
    if (!only || !/^(?:string|concatenated_string)$/.test(only.type)) return [];
    inside.add(only);
    return [{ kind: 'prose', line: node.line, text: this.fold(only).texts.join('\n') }];
  }

  #call(node: Syntax): Fact[] {
    const { callee, receiver, args } = this.#parts(node);
    return [{ kind: 'call', line: node.line, callee, receiver, args }];
  }

  /** `@f` calls f; what with is only known when it runs. */
  #decorator(node: Syntax): Fact[] {
    const [named] = node.children.filter(({ type }) => type !== 'comment');
    if (!named || named.type === 'call') return [];
    const callee = withoutGlobal(this.#dotted(named) ?? '');
    return [{ kind: 'call', line: node.line, callee, receiver: UNKNOWN, args: [UNKNOWN] }];
  }

  #parts(node: Syntax): { callee: string; receiver: Value; args: Value[] } {
    const called = child(node, 'function');
    const receiver = called?.type === 'attribute' ? this.#folded(child(called, 'object')) : UNKNOWN;
    const given = child(node, 'arguments');
    // f(x for x in y) has no list of arguments: the generator stands in its place.
    const list = given?.type === 'generator_expression' ? [given] : (given?.children ?? []);
    const args = list
      .filter(({ type }) => type !== 'comment')
      .map((one) => this.#folded(one.type === 'keyword_argument' ? child(one, 'value') : one));
    return { callee: called ? withoutGlobal(this.#dotted(called) ?? '') : '', receiver, args };
  }

  #folded(node: Syntax | undefined): Value {
    return node ? this.fold(node) : UNKNOWN;
  }

  /** What an expression is, as far as it can be told. */
  readonly fold = (node: Syntax): Value => this.#names.guarded(UNKNOWN, () => this.#fold(node));

  #fold(node: Syntax): Value {
    switch (node.type) {
      case 'string':
        return foldString(node, (one) => this.#folded(one));
      case 'concatenated_string':
        return concat(node.children.map(this.fold));
      case 'integer': {
        const number = Number(node.text.replaceAll('_', ''));
        return Number.isSafeInteger(number) ? numberValue(number) : UNKNOWN;
      }
      case 'parenthesized_expression':
      case 'await':
        return this.#folded(node.children.find(({ type }) => type !== 'comment' && type !== 'await'));
      case 'list':
      case 'tuple':
      case 'set':
      case 'expression_list':
        return listValue(node.children.map(this.fold));
      case 'list_comprehension':
      case 'generator_expression':
        return this.#comprehension(node);
      case 'binary_operator':
        return foldBinary(
          child(node, 'operator')?.text ?? '',
          this.#folded(child(node, 'left')),
          this.#folded(child(node, 'right')),
        );
      case 'conditional_expression':
        return oneOf([node.children[0], node.children.at(-1)].map((one) => this.#folded(one)));
      case 'subscript':
        return this.#subscript(node);
      case 'call':
        return this.#callResult(node);
      case 'named_expression':
        return this.#folded(child(node, 'value'));
      case 'attribute': {
        const object = this.#folded(child(node, 'object'));
        const named = this.#names.valueOf(node.text, this.fold);
        return object.downloaded ? { ...UNKNOWN, downloaded: true } : named;
      }
      case 'identifier':
        return this.#names.valueOf(node.text, this.fold);
      default:
        return UNKNOWN;
    }
  }

  #subscript(node: Syntax): Value {
    const value = this.#folded(child(node, 'value'));
    const index = child(node, 'subscript');
    if (index?.type === 'slice' && /^\s*:\s*:\s*-1\s*$/.test(index.text)) {
      return foldReversed(value);
    }
    const at = this.#folded(index).number;
    if (at === null) return value.downloaded ? { ...UNKNOWN, downloaded: true } : UNKNOWN;
    return value.items?.at(at) ?? mapTexts(value, (text) => text.at(at) ?? null);
  }

  /** `f(c) for c in [...]` with an f that makes text. */
  #comprehension(node: Syntax): Value {
    const body = child(node, 'body') ?? node.children[0];
    const clause = node.children.find(({ type }) => type === 'for_in_clause');
    const over = this.#folded(clause && child(clause, 'right'));
    if (!body || over.items === null) return UNKNOWN;
    const variable = clause && child(clause, 'left')?.text;
    return listValue(over.items.map((item) => this.#with(body, variable ?? '', item)));
  }

  /** An expression in one variable, for one value of it. */
  #with(body: Syntax, variable: string, item: Value): Value {
    if (body.type === 'identifier' && body.text === variable) return item;
    if (body.type === 'binary_operator') {
      const [left, right] = [child(body, 'left'), child(body, 'right')];
      if (!left || !right) return UNKNOWN;
      const [a, b] = [left, right].map((one) => this.#with(one, variable, item));
      return a && b ? foldBinary(child(body, 'operator')?.text ?? '', a, b) : UNKNOWN;
    }
    if (body.type === 'integer') return this.fold(body);
    if (body.type !== 'call') return UNKNOWN;
    const { callee, receiver } = this.#parts(body);
    const args = (child(body, 'arguments')?.children ?? []).map((one) => this.#with(one, variable, item));
    return resultOf({ callee, receiver, args });
  }

  #callResult(node: Syntax): Value {
    const { callee, receiver, args } = this.#parts(node);
    if (callee === 'map') {
      const [named] = child(node, 'arguments')?.children ?? [];
      const how = named ? withoutGlobal(this.#dotted(named) ?? '') : '';
      const items = args[1]?.items ?? null;
      return items
        ? listValue(items.map((item) => resultOf({ callee: how, receiver: UNKNOWN, args: [item] })))
        : UNKNOWN;
    }
    return resultOf({ callee, receiver, args });
  }

  /** `os.system`, also from getattr, __import__ and namespaces; null for an expression without a name. */
  #dotted(node: Syntax): string | null {
    return this.#names.guarded(null, () => {
      switch (node.type) {
        case 'identifier':
          return this.#names.dottedOf(node.text, (one) => this.#aliased(one));
        case 'attribute': {
          const object = child(node, 'object');
          const base = object ? (this.#dotted(object) ?? '') : '';
          return `${base}.${child(node, 'attribute')?.text ?? ''}`;
        }
        case 'call':
          return this.#dottedCall(node);
        case 'subscript': {
          const key = this.#folded(child(node, 'subscript')).texts[0];
          const base = this.#dotted(child(node, 'value') ?? node) ?? '';
          if (key === undefined) return `${base}[]`;
          if (base === 'sys.modules' || NAMESPACES.test(base)) return key;
          return `${base}.${key}`;
        }
        case 'parenthesized_expression':
          return node.children[0] ? this.#dotted(node.children[0]) : null;
        default:
          return null;
      }
    });
  }

  /** What a variable's expression names: a function or module, never a call's result. */
  #aliased(node: Syntax): string | null {
    const dotted = this.#dotted(node);
    return dotted?.endsWith(')') ? null : dotted;
  }

  #dottedCall(node: Syntax): string {
    const { callee, args } = this.#parts(node);
    const [first, second] = [args[0]?.texts[0], args[1]?.texts[0]];
    if (/^(?:__import__|importlib\.import_module|import_module)$/.test(callee) && first) return first;
    if (callee === 'getattr' && second !== undefined) {
      const [object] = child(node, 'arguments')?.children ?? [];
      return withoutGlobal(`${object ? (this.#dotted(object) ?? '') : ''}.${second}`);
    }
    return `${callee}()`;
  }
}
