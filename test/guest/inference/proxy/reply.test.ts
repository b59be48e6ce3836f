import { describe, expect, it } from 'vitest';
import { Refusal } from '../../../../guest/inference/proxy/refusal.ts';
import { MAX_REPLY_BYTES, readChatReply } from '../../../../guest/inference/proxy/reply.ts';
import { choice, completion, toolCall } from '../../../support/chat-double.ts';

const MODEL = 'vendor/model-1';
const read = (body: unknown) =>
  readChatReply(
    Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    MODEL,
    3,
    1_767_225_600_999,
  );

describe('readChatReply', () => {
  it('makes the agent an answer from choice, message, tool calls and usage alone', () => {
    const said = completion({
      model: `${MODEL}-20260101`,
      choices: [choice([{ ...toolCall({ a: 1 }, 'ls'), index: 0 }], 'so')],
      system_fingerprint: 'fp',
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 99, cost: 0.1 },
    });
    const { bytes, usage } = read(said);
    expect(usage).toEqual({ prompt_tokens: 5, completion_tokens: 2 });
    expect(JSON.parse(bytes.toString())).toEqual({
      id: 'chatcmpl-3',
      object: 'chat.completion',
      created: 1_767_225_600,
      model: MODEL,
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          message: { role: 'assistant', content: 'so', tool_calls: [toolCall({ a: 1 }, 'ls')] },
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    });
  });

  const one = choice(null, 'x');
  it.each<[string, unknown]>([
    ['no JSON', 'Sorry'],
    ['a list', [1]],
    ['a key twice', `{"model":"${MODEL}","model":"x"}`],
    ['too much', ' '.repeat(MAX_REPLY_BYTES + 1)],
    ['an error in a 200', { error: { message: 'no' } }],
    ['another model', completion({ model: 'vendor/model-10' })],
    ['no model', completion({ model: undefined as unknown as string })],
    ['no choice', completion({ choices: [] })],
    ['two choices', completion({ choices: [one, one] })],
    ['a choice that is none', completion({ choices: [null] })],
    ['no message', completion({ choices: [{ ...one, message: null }] })],
    ['a content of parts', completion({ choices: [{ ...one, message: { content: [] } }] })],
    ['an unfinished choice', completion({ choices: [{ ...one, finish_reason: 'error' }] })],
    ['tool calls that are no list', completion({ choices: [{ ...one, message: { tool_calls: {} } }] })],
    ['a tool call of no function', completion({ choices: [choice([{ id: 'x', type: 'custom' }])] })],
    ['no usage', completion({ usage: undefined })],
    ['a usage below zero', completion({ usage: { prompt_tokens: -1, completion_tokens: 0 } })],
    ['a usage of text', completion({ usage: { prompt_tokens: '1', completion_tokens: 0 } })],
  ])('refuses %s', (_, body) => {
    expect(() => read(body)).toThrow(Refusal);
  });
});
