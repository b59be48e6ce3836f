import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';

/** 1..128 characters U+0021..U+007E. */
export const id = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1..128 visible ASCII characters');
/** An id that is also a directory name below a task cache. */
export const taskId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be a task name: letters, digits, ". _ -"');
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
/** A TDX register: SHA-384. */
export const register = z.string().regex(/^[0-9a-f]{96}$/, 'must be 96 lower-case hex digits');
export const hex = z.string().regex(/^(?:[0-9a-f]{2})*$/, 'must be lower-case hex');
export const ed25519PublicKey = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
export const ed25519Signature = z.string().regex(/^[0-9a-f]{128}$/, 'must be 128 lower-case hex digits');
/** `sha256:<64 hex>`: the id of an image baked beside the cache or built here. */
export const imageId = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256:<64 hex>');
/** `repo@sha256:<64 hex>`: an image in a registry. */
export const imageDigestRef = z
  .string()
  .max(512)
  .regex(/^[a-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}$/, 'must be repo@sha256:<64 hex>');
export const imageRef = z.union([imageDigestRef, imageId]);
export const f64be = z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 lower-case hex digits');
export const int = z.int().nonnegative();
export const positiveInt = z.int().positive();
export const envName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be an environment variable name');
export const pem = z
  .string()
  .max(65536)
  .regex(/^-----BEGIN [\x20-\x7e\n]*-----END [A-Z ]+-----\n$/, 'must be PEM');
export const httpsUrl = z
  .string()
  .max(2048)
  .regex(/^https:\/\/[\x21-\x7e]+$/, 'must be an https:// URL');

/** Foreign text (an unknown key, a tag) as it may stand in a message: printable ASCII, cut short. */
export function printable(text: string): string {
  return text.slice(0, 300).replaceAll(/[^\x20-\x7e]/g, '?');
}

/**
 * Checks a value against a closed schema.
 * @throws schema_invalid naming the document and the first offending field.
 */
export function parseSchema<T>(schema: z.ZodType<T>, value: unknown, document: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.map(String).join('.') ?? '';
  const what = printable(`${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid'}`);
  throw new EvaluatorError('schema_invalid', `${document}: ${what}`);
}
