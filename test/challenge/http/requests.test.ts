import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type BodyLimit, readBody } from '../../../challenge/http/requests.ts';
import { rejectionCode } from '../../support/throws.ts';

const LIMIT: BodyLimit = { maxBytes: 1000, code: 'request_too_large' };
const requestOf = (pieces: Iterable<Buffer>) =>
  Readable.from(pieces, { objectMode: false }) as unknown as IncomingMessage;

describe('a body', () => {
  it('is put together from pieces of any size', async () => {
    const pieces = ['', 'a', 'bc', 'd'.repeat(700), '', 'e'].map((text) => Buffer.from(text));
    expect(await readBody(requestOf(pieces), LIMIT)).toEqual(Buffer.concat(pieces));
    expect(await readBody(requestOf([]), LIMIT)).toEqual(Buffer.alloc(0));
  });

  it('keeps none of the pieces it came in, of which a hostile one has millions', async () => {
    function* oneByOne() {
      const piece = Buffer.alloc(1);
      for (const byte of Buffer.from('hostile')) {
        piece[0] = byte;
        yield piece;
      }
    }
    expect((await readBody(requestOf(oneByOne()), LIMIT)).toString()).toBe('hostile');
  });

  it('is refused beyond the cap, and taken at it', async () => {
    const pieces = (sizes: number[]) => requestOf(sizes.map((size) => Buffer.alloc(size)));
    expect((await readBody(pieces([999, 1]), LIMIT)).length).toBe(1000);
    expect(await rejectionCode(readBody(pieces([999, 2]), LIMIT))).toBe('request_too_large');
  });
});
