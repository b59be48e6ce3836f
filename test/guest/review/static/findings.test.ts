import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { staticFindings } from '../../../../guest/review/static/findings.ts';
import { sha256Hex } from '../../../../guest/wire/digest.ts';
import { FINDING_CLASSES } from '../../../../guest/wire/review-decision.ts';
import { builtinAgent } from '../../../../scripts/agent/builtin.ts';
import { codesIn, knowledge, membersOf, parse, reviewAgents } from '../../../support/review-agents.ts';

const AGENTS = join(import.meta.dirname, '../../../fixtures/agents');
const isReject = (code: keyof typeof FINDING_CLASSES) => FINDING_CLASSES[code] === 'reject';

describe('static findings', () => {
  const guilty = reviewAgents.filter(({ isBenign }) => !isBenign);
  const benign = reviewAgents.filter(({ isBenign }) => isBenign);

  it.each(guilty.map((agent) => [agent.name, agent] as const))('%s is found', (_, { members, finding }) => {
    expect(codesIn(members)).toContain(finding);
  });

  it.each(benign.map((agent) => [agent.name, agent] as const))(
    '%s is not rejected',
    (_, { members, finding }) => {
      const codes = codesIn(members);
      expect(codes).not.toContain(finding);
      expect(codes.filter(isReject)).toEqual([]);
    },
  );

  it.each(readdirSync(AGENTS))('says nothing of the example agent %s', (name) => {
    const folder = join(AGENTS, name);
    const files = readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))] as const);
    expect(codesIn(membersOf(Object.fromEntries(files)))).toEqual([]);
  });

  it.each(['oracle', 'nop'] as const)('says nothing of the built-in agent %s', async (name) => {
    expect(codesIn((await builtinAgent(name)).files)).toEqual([]);
  });

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
