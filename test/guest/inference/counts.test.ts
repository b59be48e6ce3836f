import { describe, expect, it } from 'vitest';
import { parseCounts } from '../../../guest/inference/counts.ts';

const COUNTS = {
  requests: 1,
  refused: 2,
  sent_bytes: 3,
  received_bytes: 4,
  prompt_tokens: 5,
  completion_tokens: 6,
};
const parse = (text: string) => parseCounts(Buffer.from(text));

describe('parseCounts', () => {
  it('reads what a proxy writes', () => {
    expect(parse(JSON.stringify(COUNTS))).toEqual(COUNTS);
  });

  it.each([
    '',
    '{',
    'null',
    JSON.stringify({ ...COUNTS, requests: -1 }),
    JSON.stringify({ ...COUNTS, requests: '1' }),
    JSON.stringify({ ...COUNTS, word: 'x' }),
    JSON.stringify({ requests: 1 }),
  ])('finds none in %j', (text) => expect(parse(text)).toBeNull());
});
