import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../../../guest/inference/proxy/refusal.ts';
import { MAX_REQUEST_BYTES, readChatRequest } from '../../../../guest/inference/proxy/request.ts';

const OFFER = { models: ['vendor/model-1', 'vendor/model-2'], maxReplyTokens: 1000 };
const LEAST = { model: 'vendor/model-2', messages: [{ role: 'user', content: 'hi' }] };

const read = (body: unknown) =>
  readChatRequest(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), OFFER);
const sent = (body: unknown): unknown => JSON.parse(read(body).bytes.toString());

function refusalOf(body: unknown): string {
  try {
    read(body);
    return 'taken';
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return `${error.code} ${error.param}`;
  }
}

describe('readChatRequest', () => {
  it('sends messages, function tools, sampling and length on, made anew', () => {
    const full = {
      ...LEAST,
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'developer', content: [{ type: 'text', text: 'be good' }] },
        { role: 'user', content: 'what is here?', name: 'someone' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'ls', arguments: '{}' } }],
        },
        { role: 'tool', content: 'a\r\nb', tool_call_id: 'call_1' },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'ls', description: 'list', parameters: { type: 'object' }, strict: true },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'ls' } },
      parallel_tool_calls: false,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.1,
      frequency_penalty: -1,
      presence_penalty: 1,
      seed: 7,
      stop: ['\n'],
      max_tokens: 10,
    };
    const { content: _, ...callOnly } = full.messages[3] ?? {};
    expect(sent(full)).toEqual({
      ...full,
      messages: full.messages.map((message, i) => (i === 3 ? callOnly : message)),
      stream: false,
    });
  });

  it('bounds the length of a reply that asks for none, and takes either name of it', () => {
    expect(sent(LEAST)).toEqual({ ...LEAST, max_tokens: 1000, stream: false });
    expect(sent({ ...LEAST, max_completion_tokens: 5, n: 1, stream: false })).toEqual({
      ...LEAST,
      max_completion_tokens: 5,
      stream: false,
    });
  });

  it('takes a reply as clients write it out, with what was not set as null', () => {
    const echoed = {
      role: 'assistant',
      content: 'ok',
      refusal: null,
      annotations: null,
      audio: null,
      function_call: null,
      tool_calls: null,
    };
    expect(sent({ ...LEAST, messages: [echoed], temperature: null })).toMatchObject({
      messages: [{ role: 'assistant', content: 'ok' }],
    });
  });

  it.each<[string, object, string]>([
    ['a preset', { preset: 'x' }, 'field_refused preset'],
    ['plugins', { plugins: [{ id: 'web' }] }, 'field_refused plugins'],
    ['a provider', { provider: { order: ['x'] } }, 'field_refused provider'],
    ['fallback models', { models: ['x'] }, 'field_refused models'],
    ['a route', { route: 'fallback' }, 'field_refused route'],
    ['transforms', { transforms: ['middle-out'] }, 'field_refused transforms'],
    ['a stored thread', { thread_id: 'x' }, 'field_refused thread_id'],
    ['an earlier response', { previous_response_id: 'x' }, 'field_refused previous_response_id'],
    ['a conversation', { conversation: 'x' }, 'field_refused conversation'],
    ['storage', { store: true }, 'field_refused store'],
    ['metadata', { metadata: { a: 'b' } }, 'field_refused metadata'],
    ['a user', { user: 'x' }, 'field_refused user'],
    ['web search', { web_search_options: {} }, 'field_refused web_search_options'],
    ['what nobody knows', { 'x\u001b[31m': 1 }, 'field_refused x?[31m'],
    ['null for what nobody knows', { surprise: null }, 'field_refused surprise'],
    ['streaming', { stream: true }, 'field_refused stream'],
    ['several choices', { n: 2 }, 'field_refused n'],
    ['too long a reply', { max_tokens: 1001 }, 'field_refused max_tokens'],
    [
      'a length of both names',
      { max_tokens: 1, max_completion_tokens: 1 },
      'field_refused max_completion_tokens',
    ],
    ['a temperature of text', { temperature: '1' }, 'field_refused temperature'],
    ['another model', { model: 'vendor/model-3' }, 'model_refused model'],
    ['a variant of a model', { model: 'vendor/model-1:online' }, 'model_refused model'],
    ['a preset as model', { model: '@preset/x' }, 'model_refused model'],
    ['no model', { model: undefined }, 'field_refused model'],
    ['no messages', { messages: undefined }, 'field_refused messages'],
    ['another role', { messages: [{ role: 'function', content: '' }] }, 'field_refused messages.0.role'],
    ['no role', { messages: [3] }, 'field_refused messages.0.role'],
    ['a role of the prototype', { messages: [{ role: 'toString' }] }, 'field_refused messages.0.role'],
    [
      'an image by its URL',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x' } }] }] },
      'field_refused messages.0.content.0.image_url',
    ],
    [
      'a cache mark',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'x', cache_control: {} }] }] },
      'field_refused messages.0.content.0.cache_control',
    ],
    [
      'an old function call',
      { messages: [{ role: 'assistant', function_call: { name: 'x', arguments: '' } }] },
      'field_refused messages.0.function_call',
    ],
    ['a tool of the server', { tools: [{ type: 'web_search' }] }, 'field_refused tools.0.type'],
    [
      'a name with a line break',
      { tools: [{ type: 'function', function: { name: 'a\r\nb' } }] },
      'field_refused tools.0.function.name',
    ],
    ['another choice of tools', { tool_choice: 'any' }, 'field_refused tool_choice'],
  ])('refuses %s by its name', (_, change, refusal) => {
    expect(refusalOf({ ...LEAST, ...change })).toBe(refusal);
  });

  it.each<[string, string]>([
    ['no JSON', '{'],
    ['a key twice', '{"model":"vendor/model-1","model":"vendor/model-3","messages":[]}'],
    ['a prototype', '{"__proto__":{"model":"vendor/model-1"},"messages":[]}'],
    ['a deep body', `{"tools":${'['.repeat(100)}${']'.repeat(100)}}`],
    ['a huge body', ' '.repeat(MAX_REQUEST_BYTES + 1)],
  ])('refuses %s', (_, body) => {
    expect(refusalOf(body)).toBe('request_malformed null');
  });

  it('sends nothing but what it knows, whatever comes', () => {
    const TOP = new Set(['model', 'messages', 'max_tokens', 'stream', 'temperature', 'stop']);
    const member = fc.record(
      { temperature: fc.jsonValue(), stop: fc.jsonValue(), plugins: fc.jsonValue(), preset: fc.jsonValue() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(member, fc.jsonValue(), (members, content) => {
        const body = { ...LEAST, ...members, messages: [{ role: 'user', content }] };
        if (refusalOf(body) !== 'taken') return;
        expect(Object.keys(sent(body) as object).filter((key) => !TOP.has(key))).toEqual([]);
        expect(members).not.toHaveProperty('plugins');
        expect(members).not.toHaveProperty('preset');
      }),
    );
  });
});
