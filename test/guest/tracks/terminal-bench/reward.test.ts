import { describe, expect, it } from 'vitest';
import { publishedReward } from '../../../../guest/tracks/terminal-bench/published-reward.ts';
import { parseReward } from '../../../../guest/tracks/terminal-bench/reward.ts';

const txt = (text: string | Buffer) => parseReward({ txt: Buffer.from(text), json: null });
const json = (text: string | Buffer) => parseReward({ txt: null, json: Buffer.from(text) });

describe('parseReward', () => {
  it.each<[string, number]>([
    ['1', 1],
    ['1\n', 1],
    ['0', 0],
    ['0\n', 0],
    ['1.0', 1],
    ['0.5\n', 0.5],
    ['.25', 0.25],
    ['0.333333333333333333333333333333333333333333333333333333333333', 1 / 3],
  ])('reads reward.txt %j as %d', (text, reward) => {
    expect(txt(text)).toBe(reward);
  });

  it.each([
    ['nothing', ''],
    ['only a newline', '\n'],
    ['two lines', '1\n1'],
    ['two newlines', '1\n\n'],
    ['a leading newline', '\n1'],
    ['CRLF', '1\r\n'],
    ['a leading space', ' 1'],
    ['a trailing space', '1 '],
    ['a byte order mark', '\ufeff1'],
    ['UTF-16', Buffer.from('1\n', 'utf16le')],
    ['NaN', 'NaN'],
    ['infinity', 'Infinity'],
    ['an exponent', '1e0'],
    ['1e999', '1e999'],
    ['more than 1', '1.0000000001'],
    ['2', '2'],
    ['a negative number', '-0.5'],
    ['-0', '-0'],
    ['a plus', '+1'],
    ['hexadecimal', '0x1'],
    ['a leading zero', '01'],
    ['a point without digits', '1.'],
    ['a comma', '0,5'],
    ['a word', 'true'],
    ['other digits', '١'],
    ['NUL', '1\0'],
    ['65 bytes', `0.${'1'.repeat(63)}`],
  ])('gives 0 for reward.txt with %s', (_, text) => {
    expect(Object.is(txt(text), 0)).toBe(true);
  });

  it('reads at most 64 bytes of reward.txt', () => {
    expect(txt(`1.${'0'.repeat(62)}`)).toBe(1);
    expect(txt(`1.${'0'.repeat(63)}`)).toBe(0);
  });

  it.each<[string, number]>([
    ['{"reward": 1}', 1],
    ['{"reward":0.5}\n', 0.5],
    ['{"reward":1e-1}', 0.1],
    ['{"reward":0}', 0],
  ])('reads reward.json %s as %d', (text, reward) => {
    expect(json(text)).toBe(reward);
  });

  it.each([
    ['nothing', ''],
    ['no object', '1'],
    ['a list', '[1]'],
    ['null', 'null'],
    ['no reward', '{}'],
    ['another member', '{"reward":1,"x":1}'],
    ['the reward twice', '{"reward":0,"reward":1}'],
    ['a string', '{"reward":"1"}'],
    ['a boolean', '{"reward":true}'],
    ['an object', '{"reward":{"reward":1}}'],
    ['NaN', '{"reward":NaN}'],
    ['1e999', '{"reward":1e999}'],
    ['more than 1', '{"reward":1.5}'],
    ['less than 0', '{"reward":-1}'],
    ['-0', '{"reward":-0}'],
    ['__proto__', '{"__proto__":{"reward":1}}'],
    ['a byte order mark', '\ufeff{"reward":1}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff])],
    ['too many bytes', `{"reward":1${' '.repeat(4096)}}`],
    ['half a million levels', '['.repeat(500_000)],
  ])('gives 0 for reward.json with %s', (_, text) => {
    expect(Object.is(json(text), 0)).toBe(true);
  });

  it('gives 0 for no file, and for both, even equal ones', () => {
    expect(parseReward({ txt: null, json: null })).toBe(0);
    expect(parseReward({ txt: Buffer.from('1'), json: Buffer.from('{"reward":1}') })).toBe(0);
  });
});

describe('publishedReward', () => {
  it('is all or nothing under vote', () => {
    expect([0, 0.5, 1 - 2 ** -53, 1].map((reward) => publishedReward(reward, 'vote'))).toEqual([0, 0, 0, 1]);
  });

  it('is rounded down to 1/64 under mean', () => {
    const rewards = [0, 1 / 65, 1 / 64, 0.5, 0.999, 1 - 2 ** -53, 1];
    expect(rewards.map((reward) => publishedReward(reward, 'mean'))).toEqual([
      0,
      0,
      1 / 64,
      0.5,
      63 / 64,
      63 / 64,
      1,
    ]);
  });
});
