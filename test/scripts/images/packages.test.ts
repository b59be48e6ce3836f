import { describe, expect, it } from 'vitest';
import { neededPackages, parseLockfile } from '../../../scripts/images/packages.ts';
import { codeOf } from '../../support/throws.ts';

const lock = (packages: Readonly<Record<string, object>>) =>
  parseLockfile(JSON.stringify({ lockfileVersion: 3, packages }));

describe('neededPackages', () => {
  it('finds a dependency where Node does: the nested one before the one above', () => {
    const packages = lock({
      'node_modules/a': { dependencies: { b: '1', c: '1' } },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': {},
      'node_modules/unused': {},
    });
    expect(neededPackages(packages, ['a'])).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/c',
    ]);
  });

  it('ends where packages need each other', () => {
    const packages = lock({
      'node_modules/a': { dependencies: { b: '1' } },
      'node_modules/b': { dependencies: { a: '1' } },
    });
    expect(neededPackages(packages, ['b'])).toEqual(['node_modules/a', 'node_modules/b']);
  });

  it('leaves out what is optional, for development, or never loaded', () => {
    const packages = lock({
      'node_modules/a': {
        dependencies: { '@types/node': '1' },
        optionalDependencies: { o: '1' },
        peerDependencies: { viem: '2', d: '1' },
      },
      'node_modules/@types/node': {},
      'node_modules/o': { optional: true },
      'node_modules/d': { dev: true },
    });
    expect(neededPackages(packages, ['a'])).toEqual(['node_modules/a']);
  });

  it('refuses a lockfile that lacks what is needed', () => {
    expect(
      codeOf(() => neededPackages(lock({ 'node_modules/a': { dependencies: { b: '1' } } }), ['a'])),
    ).toBe('build_source_invalid');
  });

  it.each(['{', '{}', '{"lockfileVersion":2,"packages":{}}'])('refuses the lockfile %s', (text) => {
    expect(codeOf(() => parseLockfile(text))).toBe('build_source_invalid');
  });
});
