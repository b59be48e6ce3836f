import { describe, expect, it } from 'vitest';
import { staticFindings } from '../../../../guest/review/static/findings.ts';
import { sha256Hex } from '../../../../guest/wire/digest.ts';
import { knowledge, membersOf, parse, reviewAgents } from '../../../support/review-agents.ts';

describe('static findings', () => {
  it('cites path, line and the digest of that line', () => {
    const members = membersOf({ 'src/a.py': 'x = 1\nopen("/tests/a")\r\n', 'ü.bin': Buffer.of(0, 1) });
    expect(staticFindings(members, { parse, knowledge })).toEqual([
      {
        code: 'reads_hidden_tests',
        path: 'src/a.py',
        line: 2,
        excerpt_sha256: sha256Hex('open("/tests/a")'),
      },
      {
        code: 'member_not_text',
        path: '\\xc3\\xbc.bin',
        line: 0,
        excerpt_sha256: sha256Hex(Buffer.of(0, 1)),
      },
    ]);
  });

  it('is the same on every call', () => {
    const members = reviewAgents.flatMap(({ members: [, file] }, i) =>
      file ? [{ path: `${i}-${file.path}`, bytes: file.bytes }] : [],
    );
    const once = staticFindings(members, { parse, knowledge });
    expect(staticFindings(members, { parse, knowledge })).toEqual(once);
  });
});
