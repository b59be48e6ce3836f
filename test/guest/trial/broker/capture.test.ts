import { describe, expect, it } from 'vitest';
import { CommandCapture } from '../../../../guest/trial/broker/capture.ts';

const KEPT = 128 * 1024;

function capture(...pieces: readonly (readonly ['stdout' | 'stderr', string | Buffer])[]): CommandCapture {
  const made = new CommandCapture();
  for (const [stream, bytes] of pieces) made.write(stream, Buffer.from(bytes));
  made.end();
  return made;
}

describe('CommandCapture', () => {
  it('takes the process id off the front of stderr, however it is cut', async () => {
    for (const cuts of [['42\noops'], ['4', '2', '\n', 'oops'], ['42\n', 'oops']]) {
      const seen = capture(...cuts.map((cut) => ['stderr', cut] as const), ['stdout', 'out']);
      expect(await seen.pid).toBe(42);
      expect(seen.printed()).toEqual({ stdout: 'out', stderr: 'oops', truncated: false });
    }
  });

  it.each(['', 'oops\n', '0\n', '-1\n', '1e3\n', '12345678901\n', 'no newline at all'])(
    'takes %j for no process id, and keeps it',
    async (text) => {
      const seen = capture(['stderr', text]);
      expect(await seen.pid).toBeNull();
      expect(seen.printed().stderr).toBe(text);
    },
  );

  it('keeps the start and the end of a flood, and says that it left something out', () => {
    const seen = capture(
      ['stderr', '1\n'],
      ['stdout', 'start'],
      ['stdout', Buffer.alloc(3 * KEPT, 'x')],
      ['stdout', 'end'],
    );
    const { stdout, truncated } = seen.printed();
    expect(truncated).toBe(true);
    expect(stdout).toMatch(/^start/);
    expect(stdout).toMatch(new RegExp(`\\[\\.\\.\\. ${KEPT + 8} bytes left out \\.\\.\\.\\]`));
    expect(stdout).toMatch(/end$/);
    expect(stdout.length).toBeLessThan(2 * KEPT + 100);
  });

  it('turns bytes that are no UTF-8 into U+FFFD', () => {
    expect(capture(['stderr', '1\n'], ['stdout', Buffer.from([0x61, 0xff])]).printed().stdout).toBe(
      'a\ufffd',
    );
  });
});
