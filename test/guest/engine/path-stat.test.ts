import { describe, expect, it } from 'vitest';
import { parsePathStat } from '../../../guest/engine/path-stat.ts';

function header(mode: unknown, linkTarget = ''): string {
  return Buffer.from(JSON.stringify({ name: 'x', size: 5, mode, mtime: '', linkTarget })).toString('base64');
}

describe('parsePathStat', () => {
  it('knows a regular file, setuid or not', () => {
    const regular = { isRegularFile: true, isDirectory: false, sizeBytes: 5 };
    expect(parsePathStat(header(0o644))).toMatchObject(regular);
    expect(parsePathStat(header(0o755 + 2 ** 23))).toMatchObject(regular);
  });

  it('knows a directory, sticky or not', () => {
    expect(parsePathStat(header(0o755 + 2 ** 31))).toMatchObject({ isRegularFile: false, isDirectory: true });
    expect(parsePathStat(header(0o777 + 2 ** 31 + 2 ** 20))).toMatchObject({ isDirectory: true });
  });

  it.each([
    ['a symbolic link', 2 ** 27],
    ['a device', 2 ** 26],
    ['a character device', 2 ** 26 + 2 ** 21],
    ['a FIFO', 2 ** 25],
    ['a socket', 2 ** 24],
    ['what has no name', 2 ** 19],
  ])('takes %s for neither', (_, bits) => {
    expect(parsePathStat(header(0o644 + bits))).toMatchObject({ isRegularFile: false, isDirectory: false });
  });

  it.each([undefined, '', 'e30=', header('0644'), header(-1), header(2 ** 32), header(0.5)])(
    'refuses the header %j',
    (text) => {
      expect(() => parsePathStat(text)).toThrow(expect.objectContaining({ code: 'engine_error' }));
    },
  );
});
