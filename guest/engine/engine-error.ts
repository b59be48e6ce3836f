import { type Code, EvaluatorError } from '../errors.ts';

/** What a call was about. */
export interface Subject {
  /** Its name in the port. */
  call: string;
  of: string;
  /** Environment whose values must not show. */
  env?: readonly string[];
  /** The engine's words about a container's files may quote what an agent wrote (spec/03): withheld. */
  about?: 'files';
}

const wordsOf = new WeakMap<EvaluatorError, string>();

/** What the engine said, for a decision and never for a log; '' when it said nothing. */
export function engineWords(error: EvaluatorError): string {
  return wordsOf.get(error) ?? '';
}

const UNREACHABLE = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EACCES', 'ENOTSOCK']);

/** The EvaluatorError for a connection that failed, or broke while an answer was read. */
export function connectionError(subject: Subject, error: unknown): EvaluatorError {
  const errno = property(error, 'code');
  return new EvaluatorError(
    'engine_unreachable',
    `${subject.call} ${subject.of}: no connection to the engine (${typeof errno === 'string' ? errno : 'closed'}); is it running, and is its socket there?`,
  );
}

/** The EvaluatorError for what docker-modem reports: a status that is no success, or no connection. */
export function answerError(subject: Subject, error: unknown): EvaluatorError {
  if (error instanceof EvaluatorError) return error; // of the stream that was to be sent
  const status = property(error, 'statusCode');
  const errno = property(error, 'code');
  if (typeof errno === 'string' && UNREACHABLE.has(errno)) return connectionError(subject, error);
  const words = String(property(error, 'message')).replace(PREFIX, '').trim();
  const shown = subject.about === 'files' ? `status ${status}` : showable(words, subject.env ?? []);
  const mapped = new EvaluatorError(codeOf(status), `${subject.call} ${subject.of}: ${shown}`);
  wordsOf.set(mapped, words);
  return mapped;
}

/** What docker-modem puts in front of the engine's words. */
const PREFIX = /^\(HTTP code \d+\) \S+ - /;

function codeOf(status: unknown): Code {
  if (status === 404) return 'engine_not_found';
  if (status === 409 || status === 304) return 'engine_conflict';
  return 'engine_error';
}

/** One bounded line, without control characters and without environment values. */
function showable(words: string, env: readonly string[]): string {
  let text = words;
  for (const entry of env) {
    const value = entry.slice(entry.indexOf('=') + 1);
    if (value !== '') text = text.replaceAll(value, '[redacted]');
  }
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 400);
}

function property(error: unknown, name: 'code' | 'statusCode' | 'message'): unknown {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;
}
