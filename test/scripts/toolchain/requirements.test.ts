import { describe, expect, it } from 'vitest';
import { normalizeName, parseRequirements } from '../../../scripts/toolchain/requirements.ts';

const HASH = 'a'.repeat(64);

describe('parseRequirements', () => {
  it('reads pinned lines, drops comments and normalises names', () => {
    expect(parseRequirements(`# why\n\nTyping_Extensions==4.15.0 --hash=sha256:${HASH}\n`)).toEqual([
      { name: 'typing-extensions', version: '4.15.0', sha256: HASH, form: 'wheel', python: null },
    ]);
  });

  it('marks a source archive', () => {
    expect(parseRequirements(`chess==1.11.2 --hash=sha256:${HASH} # sdist`)).toMatchObject([
      { form: 'sdist' },
    ]);
  });

  it('reads which Python a wheel was compiled for, and takes the same version for another', () => {
    const line = `demo==1.0 --hash=sha256:${HASH}`;
    expect(parseRequirements(`${line}\n${line} # cp312\n`).map(({ python }) => python)).toEqual([
      null,
      '3.12',
    ]);
    expect(() => parseRequirements(`${line} # cp312\n${line} # cp312\n`)).toThrowError(
      expect.objectContaining({ code: 'toolchain_invalid', message: expect.stringContaining('line 2') }),
    );
  });

  it('takes two versions of one name, and no version twice', () => {
    const line = (version: string) => `pytest==${version} --hash=sha256:${HASH}\n`;
    expect(parseRequirements(line('8.4.1') + line('8.4.2'))).toHaveLength(2);
    expect(() => parseRequirements(line('8.4.1') + line('8.4.1'))).toThrowError(
      expect.objectContaining({ code: 'toolchain_invalid', message: expect.stringContaining('line 2') }),
    );
  });

  it.each(['pytest', 'pytest==8.4.1', `pytest>=8 --hash=sha256:${HASH}`, 'pytest==8.4.1 --hash=md5:00'])(
    'refuses %j',
    (line) => {
      expect(() => parseRequirements(line)).toThrowError(
        expect.objectContaining({ code: 'toolchain_invalid' }),
      );
    },
  );
});

describe('normalizeName', () => {
  it('compares as PEP 503 does', () => {
    expect(normalizeName('Foo.-_Bar')).toBe('foo-bar');
  });
});
