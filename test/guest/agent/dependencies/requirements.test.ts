import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  normalizeName,
  parseRequirements,
  type Requirement,
  verifyListed,
} from '../../../../guest/agent/dependencies/requirements.ts';
import { isEvaluatorError } from '../../../../guest/errors.ts';
import { codeOf, thrown } from '../../../support/throws.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const parse = (text: string) => parseRequirements(Buffer.from(text));

describe('parseRequirements', () => {
  it('reads pins, hashes, comments and continuations as pip-compile writes them', () => {
    const text = `#
# This file was made with --hash=sha256:${A}
#
Charset_Normalizer.X==3.4.1 \\
    --hash=sha256:${A} \\
    --hash=sha256:${B}
    # via requests
idna==3.9 --hash=sha256:${B} # a comment

local==1.0!2.0rc1+cpu.1 --hash=sha256:${A}\r
`;
    expect(parse(text)).toEqual([
      { name: 'charset-normalizer-x', version: '3.4.1', hashes: [A, B], line: 4 },
      { name: 'idna', version: '3.9', hashes: [B], line: 8 },
      { name: 'local', version: '1.0!2.0rc1+cpu.1', hashes: [A], line: 10 },
    ]);
    expect(parse('')).toEqual([]);
    expect(parse('# nothing\n\n')).toEqual([]);
  });

  const hash = `--hash=sha256:${A}`;
  it.each<[string, string, number]>([
    ['no hash', 'idna==3.9', 1],
    ['a range', `idna>=3 ${hash}`, 1],
    ['no version', `\nidna ${hash}`, 2],
    ['a pattern', `idna==3.* ${hash}`, 1],
    ['two pins', `idna==3==4 ${hash}`, 1],
    ['arbitrary equality', `idna===3 ${hash}`, 1],
    ['spaces around ==', `idna == 3 ${hash}`, 1],
    ['an extra', `httpx[http2]==1 ${hash}`, 1],
    ['a marker', `idna==3;python_version<"3" ${hash}`, 1],
    ['a marker after a space', `idna==3 ; python_version<"3" ${hash}`, 1],
    ['another digest', 'idna==3 --hash=md5:d41d8cd98f00b204e9800998ecf8427e', 1],
    ['a short digest', 'idna==3 --hash=sha256:aa', 1],
    ['an upper-case digest', `idna==3 ${hash.toUpperCase()}`, 1],
    ['an option of a requirement', `idna==3 ${hash} --global-option=x`, 1],
    ['an index', `idna==3 ${hash}\n--index-url https://elsewhere.invalid/`, 2],
    ['another file', `# x\n\n-r more.txt`, 3],
    ['an editable', '-e .', 1],
    ['a URL', `https://elsewhere.invalid/x.whl ${hash}`, 1],
    ['a name at a URL', `idna@https://elsewhere.invalid/x.whl ${hash}`, 1],
    ['a path', `./x.whl ${hash}`, 1],
    ['a name twice', `idna==3 ${hash}\nIDNA==3 ${hash}`, 2],
    ['an open continuation', `idna==3 ${hash} \\`, 1],
    ['a variable', `\${NAME}==3 ${hash}`, 1],
    ['a control character', `idna==3 ${hash}\n\u001b[31m`, 2],
    ['a letter beyond ASCII', `ıdna==3 ${hash}`, 1],
    ['a byte order mark', `\ufeffidna==3 ${hash}`, 1],
    ['a NUL', `idna==3\0 ${hash}`, 1],
    ['a form feed', `idna==3\f${hash}`, 1],
  ])('refuses %s, with its line', (_, text, line) => {
    const error = thrown(() => parse(text));
    expect(isEvaluatorError(error, 'requirements_invalid')).toBe(true);
    expect((error as Error).message).toMatch(new RegExp(`^requirements\\.txt:${line}: [\\x20-\\x7e]+$`));
  });

  it('bounds the file and the number of packages', () => {
    expect(codeOf(() => parse(`#${'x'.repeat(256 * 1024)}`))).toBe('requirements_invalid');
    const many = Array.from({ length: 257 }, (_, i) => `p${i}==1 ${hash}\n`).join('');
    expect(codeOf(() => parse(many))).toBe('requirements_invalid');
  });

  const hex = fc.array(fc.constantFrom(...'0123456789abcdef'), { minLength: 64, maxLength: 64 });
  const requirement = fc.record({
    name: fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?$/),
    version: fc.stringMatching(/^[0-9]([0-9a-z.]{0,10}[0-9a-z])?$/),
    hashes: fc.uniqueArray(
      hex.map((digits) => digits.join('')),
      { minLength: 1, maxLength: 3 },
    ),
  });
  const gap = fc.constantFrom(' ', '  ', '\t', ' \\\n    ');

  it('reads back every list that can be written, however it is laid out', () => {
    const lists = fc.uniqueArray(requirement, { selector: ({ name }) => normalizeName(name), maxLength: 5 });
    fc.assert(
      fc.property(lists, gap, fc.constantFrom('', ' # why', '\n# via x', '\r'), (wanted, between, tail) => {
        const text = wanted
          .map(({ name, version, hashes }) =>
            [`${name}==${version}`, ...hashes.map((one) => `--hash=sha256:${one}`)]
              .join(between)
              .concat(`${tail}\n`),
          )
          .join('');
        const plain = ({ name, version, hashes }: Omit<Requirement, 'line'>) => ({
          name: normalizeName(name),
          version,
          hashes,
        });
        expect(parse(text).map(plain)).toEqual(wanted.map(plain));
      }),
    );
  });

  it('reads or refuses every text, and what it reads is whole', () => {
    const piece = fc.constantFrom(
      'idna',
      '==',
      '3.9',
      ' ',
      `--hash=sha256:${A}`,
      '\\',
      '\n',
      '#',
      '-r',
      ';',
      '[x]',
      '@',
      'é',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        let read: Requirement[];
        try {
          read = parse(text);
        } catch (error) {
          expect(isEvaluatorError(error, 'requirements_invalid')).toBe(true);
          return;
        }
        for (const { name, version, hashes } of read) {
          expect(name).toMatch(/^[a-z0-9-]+$/);
          expect(version).toMatch(/^[0-9][0-9a-zA-Z.]*$/);
          expect(hashes).toEqual([A]);
        }
      }),
    );
  });
});

describe('verifyListed', () => {
  it('takes names on the list alone', () => {
    const wanted = parse(`idna==3 --hash=sha256:${A}\n\nEvil.Name==1 --hash=sha256:${A}\n`);
    expect(() => verifyListed(wanted, ['evil-name', 'idna'])).not.toThrow();
    const error = thrown(() => verifyListed(wanted, ['idna']));
    expect(isEvaluatorError(error, 'dependency_not_listed')).toBe(true);
    expect((error as Error).message).toMatch(/^requirements\.txt:3: evil-name /);
  });
});
