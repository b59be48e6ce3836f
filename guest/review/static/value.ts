/** Stands in a text for a part that is only known when the agent runs. */
export const HOLE = '\uFFFF';

const MAX_ALTERNATIVES = 8;
const MAX_TEXT = 65_536;

/** What an expression is known to be without running it. */
export interface Value {
  /** The texts it can be; none: unknown. Bytes are Latin-1 texts. */
  texts: readonly string[];
  items: readonly Value[] | null;
  number: number | null;
  /** It was decoded from a text of the program itself: not from what came in while it runs. */
  decoded: boolean;
  /** It comes over the network. */
  downloaded: boolean;
}

export const UNKNOWN: Value = { texts: [], items: null, number: null, decoded: false, downloaded: false };

export function textValue(text: string): Value {
  return { ...UNKNOWN, texts: [text.slice(0, MAX_TEXT)] };
}

export function listValue(items: readonly Value[]): Value {
  return { ...UNKNOWN, items };
}

export function numberValue(number: number): Value {
  return { ...UNKNOWN, number };
}

/** One of several: what a variable can be. */
export function oneOf(values: readonly Value[]): Value {
  const [first] = values;
  if (first !== undefined && values.length === 1) return first;
  return {
    ...flags(values),
    texts: [...new Set(values.flatMap(({ texts }) => texts))].slice(0, MAX_ALTERNATIVES),
    items: values.find(({ items }) => items !== null)?.items ?? null,
    number: null,
  };
}

function flags(values: readonly Value[]): Value {
  return {
    ...UNKNOWN,
    decoded: values.some(({ decoded }) => decoded),
    downloaded: values.some(({ downloaded }) => downloaded),
  };
}

function textsOrHole(value: Value): readonly string[] {
  if (value.texts.length > 0) return value.texts;
  return [value.number === null ? HOLE : String(value.number)];
}

/** `text` behind `before`, unless that is too long: never cut, because a cut copies what an addition only links. */
const added = (before: string, text: string) =>
  before.length + text.length > MAX_TEXT ? before : before + text;

/** The texts of parts one after another; unknown parts are holes. */
export function concat(parts: readonly Value[], separator = ''): Value {
  let texts = [''];
  parts.forEach((part, i) => {
    const glue = i === 0 ? '' : separator;
    texts = texts
      .flatMap((before) => textsOrHole(part).map((text) => added(before, glue + text)))
      .slice(0, MAX_ALTERNATIVES);
  });
  return { ...flags(parts), texts };
}

/** The same value with each text mapped; null of `edit` is a text that cannot be told. */
export function mapTexts(value: Value, edit: (text: string) => string | null): Value {
  const texts = value.texts.flatMap((text) => edit(text) ?? []);
  return { ...value, texts: texts.map((text) => text.slice(0, MAX_TEXT)) };
}

/** A text `times` over, no longer than any other. */
export function repeated(value: Value, times: number): Value {
  return mapTexts(value, (text) => {
    const fitting = Math.ceil(MAX_TEXT / Math.max(1, text.length));
    return text.repeat(Math.min(Math.max(0, times), fitting));
  });
}

/** Every text in a value, those of its items too. */
export function textsOf(value: Value, depth = 0): string[] {
  if (depth > 4) return [];
  return [...value.texts, ...(value.items ?? []).flatMap((item) => textsOf(item, depth + 1))];
}

export function anyFlag(values: readonly Value[], flag: 'decoded' | 'downloaded'): boolean {
  return values.some((value) => value[flag] || (value.items !== null && anyFlag(value.items, flag)));
}
