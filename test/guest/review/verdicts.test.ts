import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FINDING_CLASSES, type FindingCode, POLICY_PASSED } from '../../../guest/wire/review-decision.ts';
import { builtinAgent } from '../../../scripts/agent/builtin.ts';
import { decisionOf, membersOf, type ReviewAgent, reviewAgents } from '../../support/review-agents.ts';

const AGENTS = join(import.meta.dirname, '../../fixtures/agents');
const ALLOWED = { verdict: 'allow', reason_codes: [POLICY_PASSED] };
/** A look-alike that may still say what it may not do: that is for a person, never for a rejection. */
const SUSPECTED: Readonly<Record<string, FindingCode>> = {
  'reads_hidden_tests/benign_guard.py': 'mentions_protected_path',
};
const named = (agents: readonly ReviewAgent[]) => agents.map((agent) => [agent.name, agent] as const);
const isBenign = ({ kind }: ReviewAgent) => kind === 'benign';

describe('the agents of our own', () => {
  it.each(Object.keys(FINDING_CLASSES) as FindingCode[])(
    'are three or more for %s, one of them obfuscated, and a look-alike',
    (code) => {
      const kinds = reviewAgents.filter(({ finding }) => finding === code).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind !== 'benign').length).toBeGreaterThanOrEqual(3);
      expect(kinds).toContain('obfuscated');
      expect(kinds).toContain('benign');
    },
  );

  it('are for no other class', () => {
    for (const { name, finding } of reviewAgents)
      expect(Object.keys(FINDING_CLASSES), name).toContain(finding);
  });
});

describe('whatever the model says', () => {
  it.each(named(reviewAgents.filter((one) => !isBenign(one))))('%s gets its verdict', async (_, agent) => {
    const { verdict, reason_codes: codes } = await decisionOf(agent.members);
    expect(codes).toContain(agent.finding);
    expect(verdict).toBe(FINDING_CLASSES[agent.finding]);
  });

  it.each(named(reviewAgents.filter(isBenign)))('%s is not rejected', async (name, { members }) => {
    const suspected = SUSPECTED[name];
    expect(await decisionOf(members)).toEqual(
      suspected ? { verdict: 'escalate', reason_codes: [suspected] } : ALLOWED,
    );
  });

  it.each(readdirSync(AGENTS))('the example agent %s is allowed', async (name) => {
    const folder = join(AGENTS, name);
    const files = readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))] as const);
    expect(await decisionOf(membersOf(Object.fromEntries(files)))).toEqual(ALLOWED);
  });

  it.each(['oracle', 'nop'] as const)('the built-in agent %s is allowed', async (name) => {
    expect(await decisionOf((await builtinAgent(name)).files)).toEqual(ALLOWED);
  });
});
