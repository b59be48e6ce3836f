import { unescapeSequence } from './escapes.ts';
import type { Fact } from './facts.ts';
import { declare, moduleName, type NameReader } from './javascript-names.ts';
import { resultOf } from './known-calls.ts';
import { Names, withoutGlobal } from './names.ts';
import { child, type Syntax, walk } from './syntax.ts';
import { concat, listValue, numberValue, oneOf, textValue, UNKNOWN, type Value } from './value.ts';

const TEXTS = new Set(['string', 'template_string', 'binary_expression', 'call_expression']);
const COMPARISONS = new Set(['==', '===', '!=', '!==', 'in']);

/** Facts of one JavaScript or TypeScript file. */
export function readJavaScript(root: Syntax): Fact[] {
  const names = new Names();
  const reader = new JavaScriptReader(names);
  for (const node of walk(root)) declare(node, names, reader);
  const facts: Fact[] = [];
  const inside = new Set<Syntax>();
  for (const node of walk(root)) {
    if (inside.has(node)) for (const part of node.children) inside.add(part);
    facts.push(...reader.factsOf(node, inside));
  }
  return facts;
}

class JavaScriptReader implements NameReader {
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  textOf(node: Syntax | undefined): string | undefined {
    return this.#folded(node).texts[0];
  }

  dottedOf(node: Syntax): string | null {
    return this.#dotted(node);
  }

  factsOf(node: Syntax, inside: Set<Syntax>): Fact[] {
    const { line } = node;
    switch (node.type) {
      case 'comment':
        return [{ kind: 'prose', line, text: node.text }];
      case 'binary_expression':
        return [...this.#comparison(node), ...this.#text(node, inside)];
      case 'switch_case':
        return [{ kind: 'compare', line, operands: [this.#folded(child(node, 'value'))] }];
      case 'pair': {
        const key = child(node, 'key');
        const value = key?.type === 'property_identifier' ? textValue(key.text) : this.#folded(key);
        return [{ kind: 'key', line, value }];
      }
      case 'call_expression':
      case 'new_expression':
        return [{ kind: 'call', line, ...this.#parts(node) }, ...this.#text(node, inside)];
      default:
        return this.#text(node, inside);
    }
  }

  #text(node: Syntax, inside: Set<Syntax>): Fact[] {
    if (inside.has(node) || !TEXTS.has(node.type)) return [];
    const value = this.fold(node);
    if (value.texts.length === 0) return [];
    for (const part of node.children) inside.add(part);
    return [{ kind: 'text', line: node.line, value }];
  }

  #comparison(node: Syntax): Fact[] {
    if (!COMPARISONS.has(child(node, 'operator')?.text ?? '')) return [];
    const operands = [child(node, 'left'), child(node, 'right')].map((one) => this.#folded(one));
    return [{ kind: 'compare', line: node.line, operands }];
  }

  #parts(node: Syntax): { callee: string; receiver: Value; args: Value[] } {
    const called = child(node, 'function') ?? child(node, 'constructor');
    const isMethod = called?.type === 'member_expression' || called?.type === 'subscript_expression';
    const receiver = isMethod ? this.#folded(child(called, 'object')) : UNKNOWN;
    const args = (child(node, 'arguments')?.children ?? [])
      .filter(({ type }) => type !== 'comment')
      .map(this.fold);
    return { callee: called ? withoutGlobal(this.#dotted(called) ?? '') : '', receiver, args };
  }

  #folded(node: Syntax | undefined): Value {
    return node ? this.fold(node) : UNKNOWN;
  }

  readonly fold = (node: Syntax): Value => this.#names.guarded(UNKNOWN, () => this.#fold(node));

  #fold(node: Syntax): Value {
    switch (node.type) {
      case 'string':
      case 'template_string':
        return this.#string(node);
      case 'number': {
        const number = Number(node.text.replaceAll('_', ''));
        return Number.isSafeInteger(number) ? numberValue(number) : UNKNOWN;
      }
      case 'parenthesized_expression':
      case 'await_expression':
      case 'as_expression':
      case 'non_null_expression':
      case 'spread_element':
        return this.#folded(node.children.find(({ type }) => type !== 'comment'));
      case 'array':
        return listValue(node.children.flatMap((one) => this.#spread(one)));
      case 'ternary_expression':
        return oneOf(
          [child(node, 'consequence'), child(node, 'alternative')].map((one) => this.#folded(one)),
        );
      case 'binary_expression':
        return this.#binary(node);
      case 'call_expression':
      case 'new_expression':
        return this.#callResult(node);
      case 'member_expression': {
        const named = this.#names.valueOf(node.text, this.fold);
        const object = this.#folded(child(node, 'object'));
        return object.downloaded ? { ...UNKNOWN, downloaded: true } : named;
      }
      case 'subscript_expression': {
        const at = this.#folded(child(node, 'index')).number;
        const object = this.#folded(child(node, 'object'));
        if (at === null) return UNKNOWN;
        return object.items?.[at] ?? (object.texts[0]?.[at] ? textValue(object.texts[0][at] ?? '') : UNKNOWN);
      }
      case 'identifier':
        return this.#names.valueOf(node.text, this.fold);
      default:
        return UNKNOWN;
    }
  }

  #spread(node: Syntax): readonly Value[] {
    const value = this.fold(node);
    return node.type === 'spread_element' && value.items ? value.items : [value];
  }

  #string(node: Syntax): Value {
    return concat(
      node.children.flatMap((one): Value[] => {
        if (one.type === 'template_substitution') return [this.#folded(one.children[0])];
        if (one.type === 'escape_sequence') return [textValue(unescapeSequence(one.text))];
        return one.type === 'string_fragment' ? [textValue(one.text)] : [];
      }),
    );
  }

  #binary(node: Syntax): Value {
    const [left, right] = [child(node, 'left'), child(node, 'right')].map((one) => this.#folded(one));
    if (!left || !right) return UNKNOWN;
    const operator = child(node, 'operator')?.text;
    if (left.number !== null && right.number !== null) {
      if (operator === '+') return numberValue(left.number + right.number);
      if (operator === '-') return numberValue(left.number - right.number);
      if (operator === '^') return numberValue(left.number ^ right.number);
    }
    if (operator === '+' && (left.texts.length > 0 || right.texts.length > 0)) return concat([left, right]);
    return operator === '||' || operator === '??' ? oneOf([left, right]) : UNKNOWN;
  }

  #callResult(node: Syntax): Value {
    const { callee, receiver, args } = this.#parts(node);
    if (callee === 'Array.from' && args[0]) return args[0].items ? args[0] : UNKNOWN;
    if (/\.map$/.test(callee) && receiver.items) {
      const how = this.#mapper(child(node, 'arguments')?.children[0]);
      if (how)
        return listValue(
          receiver.items.map((item) => resultOf({ callee: how, receiver: UNKNOWN, args: [item] })),
        );
    }
    const spread = (child(node, 'arguments')?.children ?? []).flatMap((one) => this.#spread(one));
    return resultOf({ callee, receiver, args: spread.length > args.length ? spread : args });
  }

  /** The function that `map` is given: by name, or `(c) => f(c)`. */
  #mapper(node: Syntax | undefined): string | null {
    if (!node) return null;
    if (node.type !== 'arrow_function') return this.#dotted(node);
    const body = child(node, 'body');
    return body?.type === 'call_expression' ? this.#parts(body).callee : null;
  }

  #dotted(node: Syntax): string | null {
    return this.#names.guarded(null, () => {
      switch (node.type) {
        case 'identifier':
          return this.#names.dottedOf(node.text, (one) => {
            const dotted = this.#dotted(one);
            return dotted?.endsWith(')') ? null : dotted;
          });
        case 'member_expression': {
          const base = this.#dotted(child(node, 'object') ?? node) ?? '';
          return `${base}.${child(node, 'property')?.text ?? ''}`;
        }
        case 'subscript_expression': {
          const base = this.#dotted(child(node, 'object') ?? node) ?? '';
          return `${base}.${this.#folded(child(node, 'index')).texts[0] ?? '[]'}`;
        }
        case 'call_expression': {
          const { callee, args } = this.#parts(node);
          if ((callee === 'require' || callee === 'import') && args[0]?.texts[0])
            return moduleName(args[0].texts[0]);
          return `${callee}()`;
        }
        case 'await_expression':
        case 'parenthesized_expression':
          return node.children[0] ? this.#dotted(node.children[0]) : null;
        case 'import':
          return 'import';
        case 'function_expression':
        case 'arrow_function':
          return '(function)';
        case 'string':
        case 'array':
          return '';
        default:
          return node.type === 'super' || node.type === 'this' ? node.text : null;
      }
    });
  }
}
