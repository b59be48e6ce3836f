import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readWheel, verifyWheels } from '../../../../guest/agent/dependencies/wheel.ts';
import { wheel } from '../../../support/package-index.ts';
import { type RawEntry, rawZip } from '../../../support/raw-zip.ts';
import { rejectionCode } from '../../../support/throws.ts';

const MAX = 1_000_000;
const FILENAME = 'x-1-py3-none-any.whl';
const read = (bytes: Buffer, maxBytes = MAX) => readWheel({ filename: FILENAME, bytes }, maxBytes);

describe('readWheel', () => {
  it('places what belongs into the folder of packages, and leaves scripts out', async () => {
    const files = await read(
      wheel('x', '1', {
        'x/__init__.py': '',
        'x/data.zip': 'PK\x03\x04 an archive is fine',
        'x-1.data/purelib/y.py': 'y',
        'x-1.data/platlib/z/__init__.py': 'z',
        'x-1.data/scripts/run': '#!python',
      }),
    );
    expect(files.map(({ path }) => path).sort()).toEqual(
      ['x/__init__.py', 'x/data.zip', 'y.py', 'z/__init__.py', 'x-1.dist-info/WHEEL'].sort(),
    );
  });

  const bomb = Buffer.alloc(MAX + 1);
  it.each<[string, RawEntry[]]>([
    ['a way out', [{ name: '../x.py' }]],
    ['a way out of data', [{ name: 'x-1.data/purelib/../../x.py' }]],
    ['an absolute name', [{ name: '/etc/x.py' }]],
    ['a link', [{ name: 'x.py', data: Buffer.from('/etc/passwd'), mode: 0o120777 }]],
    ['a device', [{ name: 'x', mode: 0o060644 }]],
    ['a setuid bit', [{ name: 'x', mode: 0o104755 }]],
    ['a name twice', [{ name: 'x.py' }, { name: 'x.py' }]],
    ['names that fold to one', [{ name: 'x.py' }, { name: 'X.py' }]],
    ['an encrypted file', [{ name: 'x.py', flags: 1 }]],
    ['a bomb', [{ name: 'x', data: bomb, method: 8 }]],
    [
      'a bomb that lies about its size',
      [{ name: 'x', data: Buffer.alloc(9), packed: deflateRawSync(bomb), method: 8 }],
    ],
    ['a .pth file', [{ name: 'x.pth', data: Buffer.from('import os') }]],
    ['a .pth file in data', [{ name: 'x-1.data/purelib/x.PTH', data: Buffer.from('import os') }]],
    ['files for elsewhere', [{ name: 'x-1.data/data/etc/x', data: Buffer.from('x') }]],
    ['headers', [{ name: 'x-1.data/headers/x.h', data: Buffer.from('x') }]],
  ])('refuses %s', async (_, entries) => {
    expect(await rejectionCode(read(wheel('x', '1', {}, entries)))).toBe('wheel_refused');
  });

  it.each<[string, Buffer]>([
    ['a source distribution', Buffer.from('1f8b08', 'hex')],
    ['a ZIP that is no wheel', rawZip([{ name: 'x.py' }])],
    ['bytes behind the end', Buffer.concat([wheel('x', '1', {}), Buffer.from('x')])],
  ])('refuses %s', async (_, bytes) => {
    expect(await rejectionCode(read(bytes))).toBe('wheel_refused');
  });
});

describe('verifyWheels', () => {
  const of = (name: string, files: Record<string, string>) => ({
    filename: `${name}.whl`,
    bytes: wheel(name, '1', files),
  });

  it('lets wheels share a folder, never a file', async () => {
    await verifyWheels([of('a', { 'ns/a.py': 'a' }), of('b', { 'ns/b.py': 'b' })], MAX);
    const clash = verifyWheels([of('a', { 'ns/a.py': 'a' }), of('b', { 'ns/A.py': 'b' })], MAX);
    expect(await rejectionCode(clash)).toBe('wheel_refused');
  });

  it('bounds all of them together', async () => {
    const half = 'x'.repeat(600_000);
    expect(await rejectionCode(verifyWheels([of('a', { a: half }), of('b', { b: half })], MAX))).toBe(
      'dependencies_too_large',
    );
  });
});
