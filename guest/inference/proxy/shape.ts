import { Refusal } from './refusal.ts';

/** Reads one value, named by its path, and returns what may be sent on. @throws Refusal naming the path. */
export type Reader<T> = (value: unknown, path: string) => T;

const SHOWN_CHARACTERS = 100;
const MAX_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Foreign text as it may stand in a message. */
function shown(path: string): string {
  return path.slice(0, SHOWN_CHARACTERS).replaceAll(/[^\x20-\x7e]/g, '?');
}

/** @throws Refusal */
export function refuse(path: string, what: string): never {
  const param = shown(path);
  throw new Refusal('field_refused', `${param}: ${what}`, param);
}

export const text: Reader<string> = (value, path) =>
  typeof value === 'string' ? value : refuse(path, 'must be a string');

export const name: Reader<string> = (value, path) =>
  typeof value === 'string' && MAX_NAME.test(value)
    ? value
    : refuse(path, 'must be 1 to 64 letters, digits, "_" or "-"');

export const flag: Reader<boolean> = (value, path) =>
  typeof value === 'boolean' ? value : refuse(path, 'must be true or false');

export const number =
  (least: number, most: number): Reader<number> =>
  (value, path) =>
    typeof value === 'number' && value >= least && value <= most
      ? value
      : refuse(path, `must be a number from ${least} to ${most}`);

export const integer =
  (least: number, most: number): Reader<number> =>
  (value, path) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : refuse(path, `must be a whole number from ${least} to ${most}`);

export const oneOf =
  <T extends string | number | boolean>(...allowed: readonly T[]): Reader<T> =>
  (value, path) =>
    allowed.find((one) => one === value) ?? refuse(path, `must be ${allowed.join(', ')}`);

export const list =
  <T>(item: Reader<T>, most: number): Reader<T[]> =>
  (value, path) =>
    Array.isArray(value) && value.length <= most
      ? value.map((one, i) => item(one, `${path}.${i}`))
      : refuse(path, `must be a list of at most ${most}`);

/** A JSON object of any members; what it means is the model's affair. */
export const anyObject: Reader<Record<string, unknown>> = (value, path) =>
  isObject(value) ? value : refuse(path, 'must be an object');

/** A member that may be left out; null says the same. */
export interface Optional<T> {
  optional: Reader<T>;
}
export const optional = <T>(reader: Reader<T>): Optional<T> => ({ optional: reader });

/** What clients write out as null where it was not set, and what is taken as nothing else. */
export const unset: Optional<never> = optional((_, path) => refuse(path, 'is not taken'));

type Shape = Readonly<Record<string, Reader<unknown> | Optional<unknown>>>;
type Read<S extends Shape> = {
  [K in keyof S as S[K] extends Reader<unknown> ? K : never]: S[K] extends Reader<infer T> ? T : never;
} & {
  [K in keyof S as S[K] extends Reader<unknown> ? never : K]?: S[K] extends Optional<infer T> ? T : never;
};

/** An object of exactly these members, made anew from them. @throws Refusal naming an unknown member. */
export const closed =
  <S extends Shape>(shape: S): Reader<Read<S>> =>
  (value, path) => {
    if (!isObject(value)) return refuse(path || 'body', 'must be an object');
    const at = (key: string) => (path === '' ? key : `${path}.${key}`);
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(shape, key));
    if (unknown !== undefined) refuse(at(unknown), 'is not taken; leave it out');
    const read: Record<string, unknown> = {};
    for (const [key, reader] of Object.entries(shape)) {
      const found = Object.hasOwn(value, key) ? value[key] : undefined;
      if (typeof reader === 'function') read[key] = reader(found, at(key));
      else if (found !== undefined && found !== null) read[key] = reader.optional(found, at(key));
    }
    return read as Read<S>;
  };

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
