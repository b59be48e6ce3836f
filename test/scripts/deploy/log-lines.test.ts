import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LogReader } from '../../../scripts/deploy/log-lines.ts';

const read = (text: string | Buffer) => new LogReader().read(Buffer.from(text));
const STAGE = '{"level":30,"event":"stage","stage":"run","mark":"begin"}\n';
const stage = { event: 'stage', stage: 'run', mark: 'begin' };

describe('LogReader', () => {
  it('reads stages, steps, reps and errors, and passes over other events', () => {
    const rep = {
      event: 'rep',
      task_id: 'task-a',
      rep: 0,
      outcome: 'completed',
      failure: null,
      reward: 1,
      wall_ms: 5,
    };
    const lines = [
      { event: 'step', step: 'tls_key', mark: 'end', time: 1 },
      { ...rep, phases: {} },
      { event: 'error', code: 'plan_expired', message: 'plan: expired', stage: 'preflight' },
      { event: 'ended', peak_rss_bytes: 1 },
      { event: 'receipt', receipt: {} },
    ];
    expect(read(STAGE + lines.map((line) => `${JSON.stringify(line)}\n`).join(''))).toEqual([
      stage,
      { event: 'step', step: 'tls_key', mark: 'end' },
      rep,
      { event: 'error', code: 'plan_expired', message: 'plan: expired' },
    ]);
  });

  it('reads each line once, when it is complete', () => {
    const reader = new LogReader();
    expect(reader.read(Buffer.from(STAGE.slice(0, 20)))).toEqual([]);
    expect(reader.read(Buffer.from(STAGE))).toEqual([stage]);
    expect(reader.read(Buffer.from(STAGE))).toEqual([]);
    expect(reader.read(Buffer.from(STAGE + STAGE))).toEqual([stage]);
  });

  it('keeps the last RESULT line, not one that is too long', () => {
    const reader = new LogReader();
    reader.read(Buffer.from('RESULT=one\nx RESULT=no\nRESULT=two\n'));
    expect(reader.result?.toString()).toBe('two');
    const long = Buffer.concat([
      Buffer.from('RESULT='),
      Buffer.alloc(16 * 1024 * 1024 + 1, 0x61),
      Buffer.from('\n'),
    ]);
    const other = new LogReader();
    expect(other.read(long)).toEqual([]);
    expect(other.result).toBeNull();
  });

  it.each([
    ['a stage that does not exist', '{"event":"stage","stage":"paid","mark":"begin"}'],
    ['a mark with a colour', '{"event":"stage","stage":"run","mark":"\\u001b[31m"}'],
    ['a code with a colour', '{"event":"error","code":"\\u001b[31m","message":""}'],
    ['a task with a newline', '{"event":"rep","task_id":"a\\nb"}'],
  ])('shows nothing of %s', (_, line) => {
    expect(read(`${line}\n`)).toEqual([]);
  });

  it.each([
    ['colours', '\u001b]0;title\u0007\u001b[2Jgone', '?]0;title??[2Jgone'],
    ['a carriage return', 'real\rfake', 'real?fake'],
    ['a key twice', '{"event":"stage","event":"stage"}', '{"event":"stage","event":"stage"}'],
    ['a long line', 'x'.repeat(100_000), 'x'.repeat(300)],
    ['bytes that are no UTF-8', Buffer.from([0xff, 0x9b, 0x41]), '??A'],
  ])('shows %s escaped and short', (_, line, shown) => {
    expect(read(Buffer.concat([Buffer.from(line), Buffer.from('\n')]))).toEqual([
      { event: 'log', line: shown },
    ]);
  });

  it('escapes the message of an error', () => {
    const message = '\u001b[31mred\u009b\u2028';
    expect(read(`${JSON.stringify({ event: 'error', code: 'usage', message })}\n`)).toEqual([
      { event: 'error', code: 'usage', message: '?[31mred??' },
    ]);
  });

  it('stops showing foreign lines, not events', () => {
    const events = read(`${'noise\n'.repeat(5_000)}${STAGE}`);
    expect(events).toHaveLength(201);
    expect(events.at(-1)).toEqual(stage);
  });

  it('says of any bytes only what is printable', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = JSON.stringify(read(Buffer.concat([bytes, Buffer.from('\n')])));
        expect(text).toMatch(/^[\x20-\x7e]*$/);
      }),
    );
  });
});
