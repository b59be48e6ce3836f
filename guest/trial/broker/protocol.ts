import { z } from 'zod';
import { parseForeignJson } from '../../wire/foreign-json.ts';
import { envName, int, printable } from '../../wire/scalars.ts';

/** Of one line either way, in bytes; a command line of the kernel's largest argument fits. */
export const MAX_CALL_BYTES = 1024 * 1024;
const MAX_DEPTH = 4;
/** The kernel takes no longer argument or environment entry (MAX_ARG_STRLEN, with its NUL). */
const MAX_ARGUMENT_BYTES = 128 * 1024 - 1;
const MAX_ENV = 128;
const MAX_TIMEOUT_SEC = 24 * 3600;

const argument = z
  .string()
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'must be Unicode without NUL')
  .refine((text) => Buffer.byteLength(text) <= MAX_ARGUMENT_BYTES, 'must be shorter than 128 KiB');
const path = z
  .string()
  .max(4096)
  .regex(/^\/[^\0]*$/, 'must be an absolute path');
const callId = int.max(2 ** 31);

/** Counted before it is read: of every entry that is wrong a schema keeps an issue. */
const env = z
  .custom<object>((given) => typeof given === 'object', 'must be an object')
  .refine((given) => Object.keys(given).length <= MAX_ENV, `must have at most ${MAX_ENV} names`)
  .pipe(z.record(envName, argument));

const execSchema = z.strictObject({
  id: callId,
  call: z.literal('exec'),
  /** For the container's bash, or the shell that it has. */
  command: argument.min(1),
  /** null: the task's working directory. */
  cwd: path.nullish(),
  env: env.nullish(),
  timeout_sec: z.number().positive().max(MAX_TIMEOUT_SEC).nullish(),
  /** A name or number, with a group after a colon if need be; null: root. */
  user: z
    .string()
    .regex(
      /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/,
      'must be a user name or number',
    )
    .nullish(),
});
const transfer = {
  id: callId,
  /** In the agent's sandbox (upload), or in the task's container (download). */
  source: path,
  target: path,
  what: z.enum(['file', 'directory']),
};
const callSchema = z.discriminatedUnion('call', [
  execSchema,
  z.strictObject({ ...transfer, call: z.literal('upload') }),
  z.strictObject({ ...transfer, call: z.literal('download') }),
  /** Ends the call of that id; both are answered. */
  z.strictObject({ id: callId, call: z.literal('cancel'), of: callId }),
]);
export type Call = z.infer<typeof callSchema>;
export type ExecCall = z.infer<typeof execSchema>;
export type TransferCall = Extract<Call, { call: 'upload' | 'download' }>;

/** Why a call was not done, for the agent; none of it leaves its sandbox. */
export type Refusal = 'malformed' | 'limit' | 'timeout' | 'cancelled' | 'not_found' | 'refused' | 'failed';

export type Answer =
  | { stdout: string; stderr: string; return_code: number; truncated: boolean }
  | { bytes: number }
  | { error: { code: Refusal; message: string } };

export const refusal = (code: Refusal, message: string): Answer => ({ error: { code, message } });

/** What a line asks for, or why it asks for nothing; `id` null when not even that can be read. */
export type Asked = { call: Call } | { id: number | null; problem: string };

/** Reads one line of an agent: JSON by the rules for foreign documents, in a closed schema. Never throws. */
export function parseCall(line: Uint8Array): Asked {
  let value: unknown;
  try {
    value = parseForeignJson(Buffer.from(line), { maxBytes: MAX_CALL_BYTES, maxDepth: MAX_DEPTH });
  } catch (error) {
    return { id: null, problem: printable((error as Error).message) };
  }
  const parsed = callSchema.safeParse(value);
  if (parsed.success) return { call: parsed.data };
  const id = callId.safeParse((value as { id?: unknown } | null)?.id);
  const issue = parsed.error.issues[0];
  const where = issue?.path.map(String).join('.') || 'call';
  return { id: id.success ? id.data : null, problem: printable(`${where}: ${issue?.message ?? 'invalid'}`) };
}

/** The line that answers a call. */
export function answerLine(id: number | null, answer: Answer): string {
  return JSON.stringify({ id, ...answer });
}
