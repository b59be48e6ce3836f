import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ModelOutcome, readModelReply } from '../../../guest/wire/model-reply.ts';
import { isPinnedModel } from '../../../guest/wire/pinned-model.ts';
import { type Completion, choice, completion, toolCall, VERDICT } from '../../support/chat-double.ts';

const MODEL = 'vendor/model-1';
const read = (reply: unknown) => readModelReply(Buffer.from(JSON.stringify(reply)), MODEL);
const withChoices = (...choices: unknown[]) => completion({ choices });
const withArguments = (args: unknown) => completion({}, args);

describe('readModelReply', () => {
  it('reads one choice with one call of the tool', () => {
    const said = { verdict: 'reject', reason_codes: ['a'], evidence_paths: ['a.py:1'] };
    expect(read(withArguments(said))).toEqual({
      outcome: 'verdict',
      verdict: said,
      returnedModel: MODEL,
      provider: 'Vendor',
    });
  });

  it('ignores prose beside the call, and members that it does not know', () => {
    const reply = {
      ...withChoices(choice([toolCall(VERDICT)], 'My verdict is: reject!')),
      native: { x: [1.5] },
    };
    expect(read(reply).verdict).toEqual(VERDICT);
  });

  it.each<[string, ModelOutcome, unknown]>([
    ['prose alone', 'no_tool_call', withChoices(choice(null, '{"verdict":"allow"}'))],
    ['no tool call', 'no_tool_call', withChoices(choice([]))],
    ['no message', 'no_tool_call', withChoices({ index: 0 })],
    ['two tool calls', 'several_tool_calls', withChoices(choice([toolCall(VERDICT), toolCall(VERDICT)]))],
    ['two choices', 'choice_count', withChoices(choice([toolCall(VERDICT)]), choice([toolCall(VERDICT)]))],
    ['no choice', 'choice_count', withChoices()],
    ['another tool', 'other_tool', withChoices(choice([toolCall(VERDICT, 'submit')]))],
    [
      'arguments as an object',
      'other_tool',
      withChoices(choice([{ ...toolCall(''), function: { name: 'submit_verdict', arguments: VERDICT } }])),
    ],
    ['another model', 'other_model', completion({ model: 'vendor/model-2' })],
    ['an error in a 200', 'not_json', { error: { code: 502, message: 'down' } }],
    ['an array', 'not_json', []],
    [
      'arguments over 16 KiB',
      'arguments_too_large',
      withArguments({ ...VERDICT, evidence_paths: Array(64).fill('x'.repeat(256)) }),
    ],
    ['an extra argument', 'arguments_invalid', withArguments({ ...VERDICT, confidence: 1 })],
    ['a missing argument', 'arguments_invalid', withArguments({ verdict: 'allow', reason_codes: [] })],
    ['another verdict', 'arguments_invalid', withArguments({ ...VERDICT, verdict: 'ALLOW' })],
    ['33 codes', 'arguments_invalid', withArguments({ ...VERDICT, reason_codes: Array(33).fill('a') })],
    ['a code that is none', 'arguments_invalid', withArguments({ ...VERDICT, reason_codes: ['No Code'] })],
    ['65 paths', 'arguments_invalid', withArguments({ ...VERDICT, evidence_paths: Array(65).fill('a') })],
    ['arguments that are no JSON', 'arguments_invalid', withArguments('allow')],
    [
      'arguments with a key twice',
      'arguments_invalid',
      withArguments('{"verdict":"reject","verdict":"allow","reason_codes":[],"evidence_paths":[]}'),
    ],
    ['null arguments', 'arguments_invalid', withArguments('null')],
  ])('%s is %s', (_, outcome, reply) => {
    expect(read(reply)).toMatchObject({ outcome, verdict: null });
  });

  it.each<[string, Buffer]>([
    ['bad JSON', Buffer.from('{"model":')],
    ['bytes that are no UTF-8', Buffer.of(0xff, 0xfe)],
    ['nothing', Buffer.alloc(0)],
    ['a key twice', Buffer.from(JSON.stringify(completion()).replace('{', '{"model":"vendor/model-1",'))],
    ['__proto__', Buffer.from('{"__proto__":{},"model":"vendor/model-1","choices":[]}')],
    ['deep nesting', Buffer.from(`${'['.repeat(1000)}${']'.repeat(1000)}`)],
  ])('%s is not_json', (_, bytes) => {
    expect(readModelReply(bytes, MODEL)).toMatchObject({ outcome: 'not_json', verdict: null });
  });

  it('never throws, and reads a verdict only where there is one', () => {
    const anyReply = fc.record({
      model: fc.constantFrom(MODEL, `${MODEL}-20250101`, 'x'),
      choices: fc.array(fc.oneof(fc.jsonValue(), fc.constant(choice([toolCall(VERDICT)]))), { maxLength: 2 }),
    });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), anyReply), (reply) => {
        const reading = read(reply);
        expect(reading.verdict !== null).toBe(reading.outcome === 'verdict');
        if (reading.verdict) expect((reply as Completion).choices).toEqual([choice([toolCall(VERDICT)])]);
      }),
    );
  });
});

describe('isPinnedModel', () => {
  it.each([MODEL, `${MODEL}-20250514`, `${MODEL}-2025-05-14`])('takes %s', (returned) =>
    expect(isPinnedModel(returned, MODEL)).toBe(true),
  );
  it.each([
    'vendor/model-10',
    `${MODEL}-mini`,
    `${MODEL}-2025`,
    `${MODEL}:free`,
    'model-1',
    `${MODEL}-20250514x`,
    '',
  ])('refuses %j', (returned) => expect(isPinnedModel(returned, MODEL)).toBe(false));
});
