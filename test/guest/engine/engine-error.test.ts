import { describe, expect, it } from 'vitest';
import { answerError } from '../../../guest/engine/engine-error.ts';

const SUBJECT = { call: 'create', of: 'trial', env: ['TOKEN=s3cret', 'EMPTY='] };

function answer(statusCode: number, message: string): Error {
  return Object.assign(new Error(message), { statusCode });
}

describe('answerError', () => {
  it.each([
    [404, 'engine_not_found'],
    [409, 'engine_conflict'],
    [304, 'engine_conflict'],
    [400, 'engine_error'],
    [500, 'engine_error'],
  ])('maps status %i to %s', (status, code) => {
    expect(answerError(SUBJECT, answer(status, 'x'))).toMatchObject({ code, fault: 'infra' });
  });

  it.each(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'])('maps %s to engine_unreachable', (code) => {
    expect(answerError(SUBJECT, Object.assign(new Error(), { code })).code).toBe('engine_unreachable');
  });

  it('names the call and its object, and repeats no value of the environment', () => {
    const { message } = answerError(SUBJECT, answer(400, 'invalid variable TOKEN=s3cret of s3cret'));
    expect(message).toMatch(/^create trial: /);
    expect(message).not.toContain('s3cret');
  });

  it('makes one bounded line without control characters of the engine’s words', () => {
    const { message } = answerError(SUBJECT, answer(500, `one\ntwo\u001b[2J\u2028${'x'.repeat(10_000)}`));
    expect(message).not.toMatch(/[\p{C}\u2028]/u);
    expect(message.length).toBeLessThan(500);
  });
});
