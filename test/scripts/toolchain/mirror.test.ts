import { describe, expect, it } from 'vitest';
import { debianMirror, findMirror } from '../../../scripts/toolchain/mirror.ts';

describe('findMirror', () => {
  it("takes the Debian archive of the machine's apt, and its security archive", () => {
    const targets = 'http://a.test/ubuntu/\nhttp://a.test/debian/\nhttp://b.test/debian-security/\n';
    expect(findMirror(targets)).toEqual({
      main: 'http://a.test/debian',
      security: 'http://b.test/debian-security',
    });
  });

  it('looks for the security archive beside the other when none is named', () => {
    expect(findMirror('http://a.test/debian\n')?.security).toBe('http://a.test/debian-security');
  });

  it('finds none where there is none', () => {
    expect(findMirror('http://a.test/ubuntu/\nhttp://a.test/debian-ports/\n')).toBeNull();
  });
});

describe('debianMirror', () => {
  it('believes the variable first', () => {
    expect(debianMirror({ EVALUATOR_DEBIAN_MIRROR: 'http://m.test/debian/' })).toEqual({
      main: 'http://m.test/debian',
      security: 'http://m.test/debian-security',
    });
  });
});
