import { describe, expect, it } from 'vitest';
import { MAX_MODEL_REQUEST_BYTES } from '../../../guest/wire/model-request.ts';
import { base64 } from '../../../guest/wire/review-inputs.ts';

const isBase64 = (text: string) => base64.safeParse(text).success;

describe('base64', () => {
  it('takes what encodes bytes', () => {
    for (const text of ['', 'QQ==', 'QUI=', 'QUJD', 'ab+/']) expect(isBase64(text), text).toBe(true);
  });

  it('takes nothing else', () => {
    for (const text of ['Q', 'QQ', 'QQ=', 'Q===', 'QQ==QQ==', 'QU-_', 'QUJD\n', ' QUJD']) {
      expect(isBase64(text), JSON.stringify(text)).toBe(false);
    }
  });

  it('is told at the largest size that travels', () => {
    const text = Buffer.alloc(2 * MAX_MODEL_REQUEST_BYTES, 7).toString('base64');
    expect(isBase64(text)).toBe(true);
    expect(isBase64(`${text.slice(0, -4)}!!!!`)).toBe(false);
  });
});
