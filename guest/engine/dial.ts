import type { IncomingMessage } from 'node:http';
import Docker from 'dockerode';
import { EvaluatorError } from '../errors.ts';
import { withDeadline } from './deadline.ts';
import { answerError, connectionError, type Subject } from './engine-error.ts';

/** Far above any answer of the engine that is read whole (a list of all our containers is some kilobytes). */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export interface Request {
  /** Who is asking and about what; goes into error messages. */
  subject: Subject;
  deadlineMs: number;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  query?: Readonly<Record<string, string>>;
  body?: object;
  /** A tar stream, sent as the request's body. */
  upload?: NodeJS.ReadableStream | Buffer;
}

/** Carries requests to the engine; the one place that knows docker-modem. */
export interface Dial {
  /** The answer's stream as soon as its headers are there; the deadline ends with them. */
  stream(request: Request): Promise<IncomingMessage>;
  /** The whole answer, parsed; null when it is empty. The deadline covers the body. */
  json(request: Request): Promise<unknown>;
}

/**
 * Opens nothing yet: connections are made, and kept for reuse by Node's global agent, as calls need them.
 * `host` and `protocol` are named because docker-modem would else take them from DOCKER_HOST.
 */
export function dialSocket(socketPath: string): Dial {
  const modem = new Docker({ socketPath, host: undefined, protocol: 'http' }).modem;

  // docker-modem's own reading of an answer never calls back when the engine dies in the middle of one, so
  // every answer is taken as a stream.
  function open(request: Request, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      modem.dial(
        {
          path: request.query === undefined ? request.path : `${request.path}?`,
          method: request.method,
          options: { _query: request.query, _body: request.body ?? {} },
          ...(request.upload === undefined ? {} : { file: request.upload }),
          isStream: true,
          statusCodes: { 200: true, 201: true, 204: true },
          abortSignal: signal,
        },
        (error: unknown, answer: unknown) => {
          if (error) reject(answerError(request.subject, error));
          else resolve(answer as IncomingMessage);
        },
      );
    });
  }

  return {
    stream: (request) =>
      withDeadline(describe(request), request.deadlineMs, (signal) => open(request, signal)),
    json: (request) =>
      withDeadline(describe(request), request.deadlineMs, async (signal) =>
        parseAnswer(request.subject, await readAll(request.subject, await open(request, signal))),
      ),
  };
}

function describe({ subject }: Request): string {
  return `${subject.call} ${subject.of}`;
}

async function readAll(subject: Subject, answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer) {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw connectionError(subject, error);
  }
  if (size > MAX_ANSWER_BYTES) {
    throw new EvaluatorError(
      'engine_error',
      `${subject.call} ${subject.of}: answer above ${MAX_ANSWER_BYTES} bytes`,
    );
  }
  return Buffer.concat(chunks);
}

function parseAnswer(subject: Subject, bytes: Buffer): unknown {
  if (bytes.length === 0) return null;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new EvaluatorError('engine_error', `${subject.call} ${subject.of}: the answer is not JSON`);
  }
}
