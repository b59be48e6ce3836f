import { unescapeAll } from './escapes.ts';
import { child, type Syntax } from './syntax.ts';
import {
  concat,
  listValue,
  mapTexts,
  numberValue,
  repeated,
  textValue,
  UNKNOWN,
  type Value,
} from './value.ts';

/** A string literal, its prefix and interpolations as they count. */
export function foldString(node: Syntax, fold: (node: Syntax | undefined) => Value): Value {
  const isRaw = /^[a-zA-Z]*r/i.test(node.children[0]?.text ?? '');
  const literal = (text: string) => textValue(isRaw ? text : unescapeAll(text));
  const parts = node.children.flatMap((one): Value[] => {
    if (one.type === 'interpolation') return [fold(child(one, 'expression'))];
    if (one.type !== 'string_content') return [];
    const pieces: Value[] = [];
    let rest = one.text;
    for (const hole of one.children.filter(({ type }) => type === 'interpolation')) {
      const at = rest.indexOf(hole.text);
      pieces.push(literal(rest.slice(0, at)), fold(child(hole, 'expression')));
      rest = rest.slice(at + hole.text.length);
    }
    return [...pieces, literal(rest)];
  });
  return concat(parts);
}

/** `'%s/%s' % (a, b)`. */
function percent(left: Value, right: Value): Value {
  const [template] = left.texts;
  if (template === undefined) return UNKNOWN;
  const values = right.items ?? [right];
  let next = 0;
  return concat(
    template.split(/(%[sdr])/).map((part) => {
      if (!/^%[sdr]$/.test(part)) return textValue(part);
      return values[next++] ?? UNKNOWN;
    }),
  );
}

function arithmetic(operator: string, left: number, right: number): Value {
  if (operator === '+') return numberValue(left + right);
  if (operator === '-') return numberValue(left - right);
  return operator === '^' ? numberValue(left ^ right) : UNKNOWN;
}

/** `left operator right`, for numbers, texts, lists and paths. */
export function foldBinary(operator: string, left: Value, right: Value): Value {
  if (left.number !== null && right.number !== null) return arithmetic(operator, left.number, right.number);
  const isText = left.texts.length > 0 || right.texts.length > 0;
  switch (operator) {
    case '+':
      if (left.items && right.items) return listValue([...left.items, ...right.items]);
      return isText ? concat([left, right]) : UNKNOWN;
    case '/':
      // pathlib: an absolute right side starts anew.
      if (right.texts[0]?.startsWith('/')) return right;
      return left.texts.length > 0 && right.texts.length > 0 ? concat([left, right], '/') : UNKNOWN;
    case '%':
      return percent(left, right);
    case '*':
      return right.number === null ? UNKNOWN : repeated(left, right.number);
    default:
      return UNKNOWN;
  }
}

/** `[::-1]`. */
export function foldReversed(value: Value): Value {
  if (value.items) return { ...value, items: value.items.toReversed() };
  return mapTexts(value, (text) => [...text].reverse().join(''));
}
