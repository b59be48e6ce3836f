import { describe, expect, it } from 'vitest';
import { givenEnv } from '../../../guest/agent/manifest.ts';
import { parseAgentPackage } from '../../../guest/agent/package.ts';
import { zipFiles } from '../../../scripts/agent/zip-files.ts';
import { rejectionCode } from '../../support/throws.ts';

const packageOf = async (files: Readonly<Record<string, string>>) =>
  parseAgentPackage(
    await zipFiles(
      Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text), executable: false })),
    ),
  );

describe('a package without agent.yaml', () => {
  it.each([
    'class Agent(BaseAgent):\n    pass\n',
    'import x\n\nclass Agent:\n    pass\n',
    '# -*- coding: utf-8 -*-\r\nclass Agent (Base) :\r\n    pass\r\n',
  ])('is a brokered agent when agent.py has the class: %j', async (text) => {
    const { manifest } = await packageOf({ 'agent.py': text });
    expect(manifest).toEqual({
      schema_version: 1,
      kind: 'brokered',
      command: ['python3', '-m', 'evaluator_harbor', '/agent/agent.py:Agent'],
      env: 'plan',
    });
  });

  it.each([
    ['an empty file', ''],
    ['a class of another name', 'class MyAgent(BaseAgent):\n    pass\n'],
    ['a longer name', 'class AgentBase:\n    pass\n'],
    ['a class inside a block', 'if True:\n    class Agent:\n        pass\n'],
    ['an assigned one', 'Agent = make()\n'],
    ['an imported one', 'from mine import Agent\n'],
    ['a comment', '# class Agent:\n'],
  ])('is refused when agent.py has none: %s', async (_, text) => {
    await expect(packageOf({ 'agent.py': text })).rejects.toMatchObject({
      code: 'agent_manifest_invalid',
      message: expect.stringContaining('add an agent.yaml'),
    });
  });

  it('is refused when its agent.py lies deeper, or is not there', async () => {
    expect(await rejectionCode(packageOf({ 'my/agent.py': 'class Agent:\n' }))).toBe('agent_package_refused');
    expect(await rejectionCode(packageOf({ 'main.py': 'class Agent:\n' }))).toBe('agent_package_refused');
  });

  it('is not asked for the class when it has an agent.yaml, whichever kind that names', async () => {
    for (const kind of ['container', 'brokered']) {
      const yaml = `schema_version: 1\nkind: ${kind}\ncommand: [/agent/run]\nenv: [LLM_MODEL]\n`;
      const { manifest } = await packageOf({ 'agent.yaml': yaml, 'agent.py': '' });
      expect(manifest).toMatchObject({ kind, env: ['LLM_MODEL'] });
    }
  });
});

describe('givenEnv', () => {
  const allowed = ['LLM_MODEL', 'OPENROUTER_API_KEY', 'EVAL_RUN_TOKEN'];

  it('is what is asked for, of what is allowed', () => {
    expect(givenEnv({ env: ['LLM_MODEL', 'OTHER'] }, allowed)).toEqual(['LLM_MODEL']);
    expect(givenEnv({ env: [] }, allowed)).toEqual([]);
  });

  it('is all that is allowed where the package says nothing, and never a reserved name', () => {
    expect(givenEnv({ env: 'plan' }, allowed)).toEqual(['LLM_MODEL', 'OPENROUTER_API_KEY']);
  });
});
