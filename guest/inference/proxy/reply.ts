import { parseForeignJson } from '../../wire/foreign-json.ts';
import { isPinnedModel } from '../../wire/pinned-model.ts';
import { Refusal } from './refusal.ts';
import { isObject } from './shape.ts';

/** 1 MiB, as a review's reply (spec/09). */
export const MAX_REPLY_BYTES = 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_TOOL_CALLS = 128;

/** Tokens of one exchange, as the endpoint counts them. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

/** An answer as the agent gets it: nothing in it but what was read here. */
export interface ChatReply {
  usage: Usage;
  bytes: Buffer;
}

function refused(what: string): never {
  throw new Refusal('upstream_reply_refused', `the model's endpoint answered with ${what}`);
}

function readJson(body: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseForeignJson(body, { maxBytes: MAX_REPLY_BYTES, maxDepth: MAX_DEPTH });
  } catch {
    return refused('a body that is not JSON');
  }
  return isObject(value) ? value : refused('a body that is no object');
}

function readToolCall(value: unknown): unknown {
  const call = isObject(value) ? value : {};
  const called = isObject(call.function) ? call.function : {};
  const { name, arguments: args } = called;
  if (typeof call.id !== 'string' || typeof name !== 'string' || typeof args !== 'string')
    return refused('a tool call that is none of a function');
  return { id: call.id, type: 'function', function: { name, arguments: args } };
}

function readMessage(value: unknown): unknown {
  const message = isObject(value) ? value : refused('a choice without a message');
  const content = message.content ?? null;
  const calls = message.tool_calls ?? [];
  if (content !== null && typeof content !== 'string') return refused('a content that is no text');
  if (!Array.isArray(calls) || calls.length > MAX_TOOL_CALLS) return refused('tool calls that are no list');
  return {
    role: 'assistant',
    content,
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(readToolCall) }),
  };
}

const FINISHED = new Set(['stop', 'length', 'tool_calls', 'content_filter']);

function readChoice(choices: unknown): unknown {
  const [choice, ...more] = Array.isArray(choices) ? choices : [];
  if (!isObject(choice) || more.length > 0) return refused('other than one choice');
  const { finish_reason } = choice;
  if (typeof finish_reason !== 'string' || !FINISHED.has(finish_reason))
    return refused('a choice that did not finish');
  return { index: 0, finish_reason, message: readMessage(choice.message) };
}

function readUsage(value: unknown): Usage {
  const { prompt_tokens, completion_tokens } = isObject(value) ? value : {};
  if (!isCount(prompt_tokens) || !isCount(completion_tokens)) return refused('no count of tokens');
  return { prompt_tokens, completion_tokens };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/**
 * Reads the body of an answer with status 200 and makes the agent's from what it may say.
 * @param nth the exchange's number within its rep, for the answer's id.
 * @param nowMs ms since the epoch.
 * @throws Refusal: upstream_reply_refused.
 */
export function readChatReply(body: Uint8Array, model: string, nth: number, nowMs: number): ChatReply {
  const reply = readJson(body);
  if (typeof reply.model !== 'string' || !isPinnedModel(reply.model, model)) return refused('another model');
  const usage = readUsage(reply.usage);
  const bytes = Buffer.from(
    JSON.stringify({
      id: `chatcmpl-${nth}`,
      object: 'chat.completion',
      created: Math.floor(nowMs / 1000),
      model,
      choices: [readChoice(reply.choices)],
      usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens },
    }),
  );
  return { usage, bytes };
}
