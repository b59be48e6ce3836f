import { describe, expect, it } from 'vitest';
import { verifyDependencies } from '../../../guest/consensus/dependencies.ts';
import { codeOf } from '../../support/throws.ts';

const packages = { index: 'https://index/', ca_pem: null, names: ['idna', 'zope-interface'], max_bytes: 1 };
const wheel = (name: string, version = '1.0') => ({ name, version, sha256: 'ab'.repeat(32) });
const verify = (...dependencies: ReturnType<typeof wheel>[]) =>
  verifyDependencies({ dependencies }, { packages });

describe('verifyDependencies', () => {
  it('takes what the mechanism lists, each once, and none where it lists none', () => {
    expect(() => verify(wheel('idna', '3.10'), wheel('zope-interface', '7.2.post1'))).not.toThrow();
    expect(() => verifyDependencies({ dependencies: [] }, { packages: null })).not.toThrow();
  });

  it.each<[string, () => void]>([
    ['a package that is not listed', () => verify(wheel('idna'), wheel('requests'))],
    [
      'a package where none is offered',
      () => verifyDependencies({ dependencies: [wheel('idna')] }, { packages: null }),
    ],
    ['a name in another spelling', () => verify(wheel('zope.interface'))],
    ['a package twice', () => verify(wheel('idna', '3.9'), wheel('idna', '3.10'))],
    ['a version that is none', () => verify(wheel('idna', '@latest'))],
  ])('refuses %s', (_, run) => {
    expect(codeOf(run)).toBe('record_dependencies_invalid');
  });
});
