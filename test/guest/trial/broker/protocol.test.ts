import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerLine, parseCall } from '../../../../guest/trial/broker/protocol.ts';

const parse = (value: unknown) => parseCall(Buffer.from(JSON.stringify(value)));
const EXEC = { id: 1, call: 'exec', command: 'true' };
const UPLOAD = { id: 2, call: 'upload', source: '/a', target: '/b', what: 'file' };

describe('parseCall', () => {
  it('reads the four calls', () => {
    for (const call of [
      EXEC,
      { ...EXEC, cwd: '/app', env: { A: 'b' }, timeout_sec: 0.5, user: 'nobody' },
      { ...EXEC, cwd: null, env: null, timeout_sec: null, user: null },
      { ...EXEC, user: '1000:1000' },
      UPLOAD,
      { ...UPLOAD, call: 'download', what: 'directory' },
      { id: 3, call: 'cancel', of: 1 },
    ])
      expect(parse(call)).toEqual({ call });
  });

  it.each([
    ['a command that is a list', { ...EXEC, command: ['true'] }],
    ['an empty command', { ...EXEC, command: '' }],
    ['a NUL in a command', { ...EXEC, command: 'a\0b' }],
    ['a lone surrogate', { ...EXEC, command: '\ud800' }],
    ['a command longer than an argument can be', { ...EXEC, command: 'x'.repeat(128 * 1024) }],
    ['a relative cwd', { ...EXEC, cwd: 'app' }],
    ['a variable with a = in its name', { ...EXEC, env: { 'A=B': 'c' } }],
    ['a variable that is a number', { ...EXEC, env: { A: 1 } }],
    [
      '200 variables',
      { ...EXEC, env: Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`V${i}`, ''])) },
    ],
    ['a timeout of 0', { ...EXEC, timeout_sec: 0 }],
    ['a timeout without end', { ...EXEC, timeout_sec: 1e300 }],
    ['an option in place of a user', { ...EXEC, user: '--privileged' }],
    ['an unknown field', { ...EXEC, privileged: true }],
    ['a container of its choice', { ...EXEC, container: 'another' }],
    ['an unknown call', { id: 1, call: 'commit' }],
    ['a relative source', { ...UPLOAD, source: 'a' }],
    ['a target with a NUL', { ...UPLOAD, target: '/a\0' }],
    ['an unknown kind of thing', { ...UPLOAD, what: 'socket' }],
  ])('refuses %s, and says which call it was', (_, value) => {
    expect(parse(value)).toMatchObject({ id: value.id, problem: expect.any(String) });
  });

  it.each([
    ['no JSON', '{'],
    ['a list', '[1]'],
    ['null', 'null'],
    ['an id that is text', '{"id":"1","call":"exec","command":"true"}'],
    ['a key given twice', '{"id":1,"id":2,"call":"exec","command":"true"}'],
    ['too deep a document', `{"id":1,"call":"exec","command":"true","env":${'['.repeat(9)}${']'.repeat(9)}}`],
  ])('refuses %s', (_, text) => {
    expect(parseCall(Buffer.from(text))).toMatchObject({ problem: expect.any(String) });
  });

  it('counts the variables before it looks at any', () => {
    const env = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`-${i}`, i]));
    expect(parse({ ...EXEC, env })).toEqual({ id: 1, problem: 'env: must have at most 128 names' });
    expect(parse({ ...EXEC, env: 'x'.repeat(129) })).toEqual({ id: 1, problem: 'env: must be an object' });
  });

  it('never throws, and says nothing that is not printable', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 64 }),
          fc.json().map((text) => Buffer.from(text)),
        ),
        (line) => {
          const asked = parseCall(line);
          if ('problem' in asked) expect(asked.problem).toMatch(/^[\x20-\x7e]*$/);
        },
      ),
    );
  });
});

describe('answerLine', () => {
  it('is one line, whatever a command printed', () => {
    const answer = { stdout: 'a\n\u2028\r{"id":7}\n', stderr: '\0', return_code: 0, truncated: false };
    const line = answerLine(4, answer);
    expect(line).not.toMatch(/[\n\r\0]/);
    expect(JSON.parse(line)).toEqual({ id: 4, ...answer });
  });
});
