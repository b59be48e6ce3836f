import { describe, expect, it } from 'vitest';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import {
  type Corpus,
  parseCorpus,
  parseRulesBundle,
  type RulesBundle,
} from '../../../guest/wire/review-inputs.ts';
import { codeOf } from '../../support/throws.ts';

type File = RulesBundle['files'][number];

const file = (path: string, content: string | Buffer = `# ${path}\n`): File => {
  const bytes = Buffer.from(content);
  return { path, length: bytes.length, sha256: sha256Hex(bytes), content_b64: bytes.toString('base64') };
};
const rules = (files: File[], change: object = {}) => {
  const bytes = encodeCanonical({ schema_version: 1, revision_id: 'r1', files, ...change });
  return parseRulesBundle(bytes, { snapshot_sha256: sha256Hex(bytes), revision_id: 'r1' });
};

describe('rules', () => {
  it('are read, in their order', () => {
    expect(rules([file('a.md'), file('b/c.md', 'ü')])).toEqual([
      { path: 'a.md', text: '# a.md\n' },
      { path: 'b/c.md', text: 'ü' },
    ]);
  });

  it.each<[string, string, File[], object]>([
    ['files out of order', 'rules_invalid', [file('b.md'), file('a.md')], {}],
    ['a file twice', 'rules_invalid', [file('a.md'), file('a.md')], {}],
    ['another length', 'rules_invalid', [{ ...file('a.md'), length: 1 }], {}],
    ['another hash', 'rules_invalid', [{ ...file('a.md'), sha256: 'a'.repeat(64) }], {}],
    ['base64 with bits to spare', 'rules_invalid', [{ ...file('a.md', 'a'), content_b64: 'YR==' }], {}],
    ['text that is no UTF-8', 'rules_invalid', [file('a.md', Buffer.of(0xff))], {}],
    ['more than 1 MiB', 'rules_invalid', [file('a.md', 'a'.repeat(1024 * 1024)), file('b.md')], {}],
    ['another revision', 'rules_invalid', [file('a.md')], { revision_id: 'r2' }],
    ['no file', 'schema_invalid', [], {}],
    ['129 files', 'schema_invalid', Array.from({ length: 129 }, (_, i) => file(`f${100 + i}.md`)), {}],
    ['a path that leaves', 'schema_invalid', [file('../a.md')], {}],
    ['a file of another kind', 'schema_invalid', [file('a.txt')], {}],
    ['a member more', 'schema_invalid', [file('a.md')], { more: 1 }],
  ])('with %s are refused', (_, code, files, change) => {
    expect(codeOf(() => rules(files, change))).toBe(code);
  });

  it('of another digest are not read', () => {
    const expected = { snapshot_sha256: 'a'.repeat(64), revision_id: 'r1' };
    expect(codeOf(() => parseRulesBundle(Buffer.from('anything'), expected))).toBe('rules_digest_mismatch');
  });
});

describe('a corpus', () => {
  const HASH = (digit: string) => digit.repeat(64);
  const corpus: Corpus = {
    schema_version: 1,
    algorithm: 'winnow/v1',
    submissions: [
      { agent_hash: HASH('1'), fingerprints: [1, 2] },
      { agent_hash: HASH('2'), fingerprints: [5] },
    ],
    tasks: [{ task_id: 'a', instruction_sha256: HASH('a') }],
    solution_fragments: [HASH('b'), HASH('c')],
  };
  const read = (change: object) => {
    const bytes = encodeCanonical({ ...corpus, ...change });
    return parseCorpus(bytes, sha256Hex(bytes));
  };

  it('is read', () => expect(read({})).toEqual(corpus));

  it.each<[string, string, object]>([
    ['submissions out of order', 'corpus_invalid', { submissions: corpus.submissions.toReversed() }],
    [
      'fingerprints out of order',
      'corpus_invalid',
      { submissions: [{ agent_hash: HASH('1'), fingerprints: [2, 1] }] },
    ],
    ['a fragment twice', 'corpus_invalid', { solution_fragments: [HASH('b'), HASH('b')] }],
    ['another algorithm', 'schema_invalid', { algorithm: 'winnow/v2' }],
    [
      'a fingerprint too large',
      'schema_invalid',
      { submissions: [{ agent_hash: HASH('1'), fingerprints: [2 ** 48] }] },
    ],
  ])('with %s is refused', (_, code, change) => expect(codeOf(() => read(change))).toBe(code));

  it('of another digest is not read', () => {
    expect(codeOf(() => parseCorpus(encodeCanonical(corpus), HASH('0')))).toBe('corpus_digest_mismatch');
  });
});
