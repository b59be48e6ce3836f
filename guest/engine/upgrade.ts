import { connect } from 'node:net';
import { withDeadline } from './deadline.ts';
import { answerError, connectionError, type Subject } from './engine-error.ts';

/** A connection that the engine has taken over: bytes come, in the order they were written, until it closes. */
export interface RawConnection {
  closed: Promise<void>;
  /** Resolves when the bytes are with the engine, or the connection is gone. */
  write(bytes: Buffer): Promise<void>;
  /** Between the two, no chunk is read. */
  pause(): void;
  resume(): void;
  destroy(): void;
}

const READ_BYTES = 64 * 1024;
const MAX_HEAD_BYTES = 16 * 1024;
const END_OF_HEAD = '\r\n\r\n';

/**
 * Asks the engine to turn a connection into a raw one, and gives every chunk to `onBytes`, which must be done
 * with it when it returns. All chunks share one buffer: through Node's streams a flood would leave a hundred
 * megabytes of short-lived buffers behind.
 */
export function upgrade(
  socketPath: string,
  request: { subject: Subject; deadlineMs: number; path: string; body: object },
  onBytes: (bytes: Buffer) => void,
): Promise<RawConnection> {
  const { subject, deadlineMs } = request;
  return withDeadline(`${subject.call} ${subject.of}`, deadlineMs, (signal) => {
    const answer = Promise.withResolvers<RawConnection>();
    const closed = Promise.withResolvers<void>();
    let head: Buffer | null = Buffer.alloc(0);

    const take = (bytes: Buffer): void => {
      if (head === null) {
        onBytes(bytes);
        return;
      }
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(END_OF_HEAD);
      if (end < 0) {
        if (head.length > MAX_HEAD_BYTES) socket.destroy();
        return;
      }
      const status = statusOf(head);
      const rest = head.subarray(end + END_OF_HEAD.length);
      head = null;
      if (status !== 101) {
        answer.reject(answerError(subject, { statusCode: status, message: messageIn(rest) }));
        socket.destroy();
        return;
      }
      answer.resolve({
        closed: closed.promise,
        write: (data) => new Promise((resolve) => socket.write(data, () => resolve())),
        pause: () => void socket.pause(),
        resume: () => void socket.resume(),
        destroy: () => void socket.destroy(),
      });
      if (rest.length > 0) onBytes(rest);
    };

    const socket = connect({
      path: socketPath,
      onread: {
        buffer: Buffer.alloc(READ_BYTES),
        callback: (count, buffer) => {
          take(Buffer.from(buffer.buffer, buffer.byteOffset, count));
          return true;
        },
      },
    });
    socket.on('error', (error) => answer.reject(connectionError(subject, error)));
    socket.on('close', () => {
      closed.resolve();
      answer.reject(connectionError(subject, null));
    });
    signal.addEventListener('abort', () => socket.destroy());
    socket.resume();
    socket.write(requestText(request.path, JSON.stringify(request.body)));
    return answer.promise;
  });
}

function requestText(path: string, body: string): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: engine',
    'Connection: Upgrade',
    'Upgrade: tcp',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

function statusOf(head: Buffer): number {
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1', 0, 12))?.[1]);
}

/** What the engine says of a refusal, if it came in one piece with its head. */
function messageIn(body: Buffer): string {
  try {
    const { message }: { message?: unknown } = JSON.parse(body.toString('utf8'));
    return typeof message === 'string' ? message : '';
  } catch {
    return '';
  }
}
