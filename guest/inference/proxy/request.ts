import { parseForeignJson } from '../../wire/foreign-json.ts';
import { Refusal } from './refusal.ts';
import {
  anyObject,
  closed,
  flag,
  integer,
  isObject,
  list,
  name,
  number,
  oneOf,
  optional,
  type Reader,
  refuse,
  text,
  unset,
} from './shape.ts';

/** 4 MiB, as a review's request (spec/09). */
export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_MESSAGES = 4096;
const MAX_TOOLS = 128;

/** What an agent may ask for. */
export interface Offer {
  /** The mechanism's exact ids. */
  models: readonly string[];
  /** The most tokens that one reply may have. */
  maxReplyTokens: number;
}

/** A request that may be sent: nothing in it but what was read here. */
export interface ChatRequest {
  model: string;
  bytes: Buffer;
}

const textPart = closed({ type: oneOf('text'), text });
/** Text alone: an image by its URL would have the model's side fetch what the agent names. */
const content: Reader<string | { type: 'text'; text: string }[]> = (value, path) =>
  Array.isArray(value) ? list(textPart, MAX_MESSAGES)(value, path) : text(value, path);

const toolCall = closed({
  id: text,
  type: oneOf('function'),
  function: closed({ name, arguments: text }),
  index: unset,
});

const MESSAGES: Readonly<Record<string, Reader<unknown>>> = {
  system: closed({ role: oneOf('system'), content, name: optional(name) }),
  developer: closed({ role: oneOf('developer'), content, name: optional(name) }),
  user: closed({ role: oneOf('user'), content, name: optional(name) }),
  assistant: closed({
    role: oneOf('assistant'),
    content: optional(content),
    name: optional(name),
    tool_calls: optional(list(toolCall, MAX_TOOLS)),
    // A client that writes a reply out whole has these, unset.
    refusal: unset,
    annotations: unset,
    audio: unset,
    function_call: unset,
  }),
  tool: closed({ role: oneOf('tool'), content, tool_call_id: text, name: optional(name) }),
};

const message: Reader<unknown> = (value, path) => {
  const role = isObject(value) ? value.role : undefined;
  if (typeof role !== 'string' || !Object.hasOwn(MESSAGES, role))
    return refuse(`${path}.role`, `must be ${Object.keys(MESSAGES).join(', ')}`);
  return MESSAGES[role]?.(value, path);
};

const tool = closed({
  type: oneOf('function'),
  function: closed({
    name,
    description: optional(text),
    parameters: optional(anyObject),
    strict: optional(flag),
  }),
});

const toolChoice: Reader<unknown> = (value, path) =>
  isObject(value)
    ? closed({ type: oneOf('function'), function: closed({ name }) })(value, path)
    : oneOf('auto', 'none', 'required')(value, path);

const stop: Reader<string | string[]> = (value, path) =>
  Array.isArray(value) ? list(text, 4)(value, path) : text(value, path);

/** Messages, function tools, sampling and the reply's length: all that is ever sent on. */
const chatRequest = (maxReplyTokens: number) =>
  closed({
    model: text,
    messages: list(message, MAX_MESSAGES),
    tools: optional(list(tool, MAX_TOOLS)),
    tool_choice: optional(toolChoice),
    parallel_tool_calls: optional(flag),
    temperature: optional(number(0, 2)),
    top_p: optional(number(0, 1)),
    top_k: optional(integer(0, 1000)),
    min_p: optional(number(0, 1)),
    frequency_penalty: optional(number(-2, 2)),
    presence_penalty: optional(number(-2, 2)),
    seed: optional(integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
    stop: optional(stop),
    max_tokens: optional(integer(1, maxReplyTokens)),
    max_completion_tokens: optional(integer(1, maxReplyTokens)),
    n: optional(oneOf(1)),
    stream: optional(oneOf(false)),
  });

function readJson(body: Uint8Array): unknown {
  try {
    return parseForeignJson(body, { maxBytes: MAX_REQUEST_BYTES, maxDepth: MAX_DEPTH });
  } catch {
    throw new Refusal(
      'request_malformed',
      `the body must be UTF-8 JSON, no key twice, ${MAX_DEPTH} deep at most`,
    );
  }
}

/**
 * Reads an agent's request for a chat completion and makes the one that is sent from what it may say.
 * @throws Refusal: request_malformed; field_refused naming the member; model_refused.
 */
export function readChatRequest(body: Uint8Array, offer: Offer): ChatRequest {
  const asked = chatRequest(offer.maxReplyTokens)(readJson(body), '');
  const { n: _, stream: __, ...sent } = asked;
  if (!offer.models.includes(sent.model))
    throw new Refusal('model_refused', `model: must be one of ${offer.models.join(', ')}`, 'model');
  if (sent.max_tokens !== undefined && sent.max_completion_tokens !== undefined)
    refuse('max_completion_tokens', 'says the same as max_tokens; leave one out');
  const bound = sent.max_completion_tokens === undefined ? { max_tokens: offer.maxReplyTokens } : {};
  return { model: sent.model, bytes: Buffer.from(JSON.stringify({ ...bound, ...sent, stream: false })) };
}
