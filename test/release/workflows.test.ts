import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, '.github/workflows');

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Workflow {
  on: Record<string, unknown>;
  permissions: Record<string, string>;
  jobs: Record<string, { permissions?: Record<string, string>; 'timeout-minutes'?: number; steps: Step[] }>;
}

const workflows = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  return { name, text, workflow: parse(text) as Workflow };
});
const jobs = workflows.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([job, body]) => ({ at: `${name} ${job}`, body })),
);
const steps = jobs.flatMap(({ at, body }) => body.steps.map((step) => ({ at, step })));

describe('the workflows', () => {
  it('are a test and a release', () => {
    expect(workflows.map(({ name }) => name).sort()).toEqual(['release.yml', 'test.yml']);
  });

  it('name every action by commit, with its version for people', () => {
    for (const { text } of workflows) {
      const uses = [...text.matchAll(/uses: (.*)/g)].map((match) => match[1] ?? '');
      expect(uses.length).toBeGreaterThan(0);
      for (const one of uses) expect(one).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
  });

  it('run nothing but scripts that are here, without an expression in the line', () => {
    const lines = steps.flatMap(({ step }) => (step.run === undefined ? [] : [step.run]));
    expect(lines.length).toBeGreaterThan(5);
    for (const line of lines) {
      expect(line).not.toContain('${{');
      const script =
        /^(?:sudo --preserve-env=CI )?\.\/((?:scripts\/release\/|\.ci\/)[a-z-]+)(?: [^;&|`\n]*)?$/.exec(
          line,
        )?.[1];
      expect(script, line).toBeDefined();
      const file = join(ROOT, script ?? '');
      expect(existsSync(file), file).toBe(true);
      expect(statSync(file).mode & 0o111, `${file} is executable`).not.toBe(0);
    }
  });

  it('hold no right by default, and no trigger that runs a stranger with ours', () => {
    for (const { workflow } of workflows) {
      expect(workflow.permissions).toEqual({});
      expect(Object.keys(workflow.on)).not.toContain('pull_request_target');
      expect(Object.keys(workflow.on)).not.toContain('workflow_run');
    }
    for (const { body } of jobs) expect(body['timeout-minutes']).toBeGreaterThan(0);
  });

  it('leave no credential in the checkout, and take the builder by digest', () => {
    for (const { step } of steps) {
      if (step.uses?.startsWith('actions/checkout@'))
        expect(step.with).toMatchObject({ 'persist-credentials': false });
      if (step.uses?.startsWith('docker/setup-buildx-action@'))
        expect(step.with).toMatchObject({
          'driver-opts': expect.stringMatching(/^image=\S+:v[\d.]+@sha256:[0-9a-f]{64}$/),
        });
    }
  });

  it('a pull request gets to read, and no more', () => {
    const test = workflows.find(({ name }) => name === 'test.yml');
    for (const job of Object.values(test?.workflow.jobs ?? {}))
      expect(job.permissions).toEqual({ contents: 'read' });
  });
});
