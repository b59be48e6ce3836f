import { type Code, EvaluatorError } from '../errors.ts';

/** What a call was about: its name in the port, the object, and the environment whose values must not show. */
export interface Subject {
  call: string;
  of: string;
  env?: readonly string[];
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
  if (typeof status !== 'number') {
    const errno = property(error, 'code');
    if (typeof errno === 'string' && UNREACHABLE.has(errno)) return connectionError(subject, error);
    return new EvaluatorError('engine_error', `${subject.call} ${subject.of}: ${said(subject, error)}`);
  }
  return new EvaluatorError(codeOf(status), `${subject.call} ${subject.of}: ${said(subject, error)}`);
}

function codeOf(status: number): Code {
  if (status === 404) return 'engine_not_found';
  if (status === 409 || status === 304) return 'engine_conflict';
  return 'engine_error';
}

/** The engine's own words: one line, bounded, without control characters and without environment values. */
function said(subject: Subject, error: unknown): string {
  let text = error instanceof Error ? error.message : String(error);
  for (const entry of subject.env ?? []) {
    const value = entry.slice(entry.indexOf('=') + 1);
    if (value !== '') text = text.replaceAll(value, '[redacted]');
  }
  return text
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 400);
}

function property(error: unknown, name: 'code' | 'statusCode'): unknown {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;
}
