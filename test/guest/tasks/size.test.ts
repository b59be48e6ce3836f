import { describe, expect, it } from 'vitest';
import { parseSizeMb } from '../../../guest/tasks/size.ts';

describe('parseSizeMb', () => {
  it.each([
    ['2G', 2048],
    ['2GB', 2048],
    ['512M', 512],
    ['512m', 512],
    ['2048K', 2],
    [' 1G ', 1024],
  ])('reads %j as %d MiB', (text, mb) => expect(parseSizeMb(text)).toBe(mb));

  it.each(['', '2', 'G', '0G', '-1G', '1.5G', '1K', '2T', '2 G', '02G', '9999999G', '1e3M'])(
    'knows no size %j',
    (text) => expect(parseSizeMb(text)).toBeNull(),
  );
});
