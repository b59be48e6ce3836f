import { request } from 'node:http';
import { EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';

const MAX_ERROR_TEXT = 200;
/** A quote of 64 KiB in hex, an event log and a chain of certificates fit several times. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const MAX_REPLY_DEPTH = 16;

/** Text of the guest agent for a message of ours: printable ASCII, capped. */
function quoteAgentText(text: unknown): string {
  const printable = String(text).replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(printable.slice(0, MAX_ERROR_TEXT));
}

interface RawReply {
  status: number;
  body: Buffer;
}

/** One POST over a Unix socket. @throws guest_agent_timeout, guest_agent_unreachable, guest_agent_malformed. */
function post(call: AgentCall, payload: Buffer): Promise<RawReply> {
  const { socketPath, method, deadlineMs } = call;
  // Unlike a socket's idle time, this also ends an agent that sends a byte now and then.
  const signal = AbortSignal.timeout(deadlineMs);
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException) => {
      const late = signal.aborted;
      const problem = late ? `no reply within ${deadlineMs} ms` : (cause.code ?? 'the connection broke');
      const code = late ? 'guest_agent_timeout' : 'guest_agent_unreachable';
      reject(new EvaluatorError(code, `guest agent, ${method}: ${problem}`, { cause }));
    };
    const headers = { 'content-type': 'application/json', 'content-length': payload.length };
    const outgoing = request(
      { socketPath, path: `/${method}`, method: 'POST', headers, agent: false, signal },
      (incoming) => {
        const chunks: Buffer[] = [];
        let size = 0;
        incoming.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size <= MAX_REPLY_BYTES) return;
          reject(
            new EvaluatorError('guest_agent_malformed', `guest agent, ${method}: the reply is too large`),
          );
          outgoing.destroy();
        });
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) }));
        incoming.on('error', fail);
      },
    );
    outgoing.on('error', fail);
    outgoing.end(payload);
  });
}

/** The JSON of a reply; null when it is none. The reason is dropped: a reply may hold a private key. */
function jsonOf(body: Buffer): unknown {
  try {
    return parseForeignJson(body, { maxBytes: MAX_REPLY_BYTES, maxDepth: MAX_REPLY_DEPTH });
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** One call of dstack's guest agent: its method, its arguments, and how long it may take by wall clock. */
export interface AgentCall {
  socketPath: string;
  method: 'Info' | 'Version' | 'GetQuote' | 'GetTlsKey';
  body: object;
  deadlineMs: number;
}

/**
 * Calls the guest agent once: a hung one would otherwise be a silent, billed VM (spec/04).
 * @returns the reply's JSON object, not yet validated.
 * @throws guest_agent_timeout, guest_agent_unreachable, guest_agent_error, guest_agent_malformed.
 */
export async function callAgent(call: AgentCall): Promise<object> {
  const { status, body } = await post(call, Buffer.from(JSON.stringify(call.body)));
  const reply = jsonOf(body);
  const at = `guest agent, ${call.method}`;
  if (isObject(reply) && 'error' in reply)
    throw new EvaluatorError('guest_agent_error', `${at}: ${quoteAgentText(reply.error)}`);
  if (status !== 200) throw new EvaluatorError('guest_agent_error', `${at}: status ${status}`);
  if (!isObject(reply))
    throw new EvaluatorError('guest_agent_malformed', `${at}: the reply is no JSON object`);
  return reply;
}
