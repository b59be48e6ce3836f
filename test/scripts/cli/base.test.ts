import { describe, expect, it } from 'vitest';
import { base } from '../../../scripts/cli/base.ts';
import { makeBases } from '../../../scripts/tasks/base.ts';
import { rejectionCode } from '../../support/throws.ts';

describe('evaluator base --suite', () => {
  it.each([
    [['--for', 'tasks', '--suite', 'bookworm']],
    [['--for', 'tasks', '--from', '.', '--suite', 'bullseye']],
    [['--for', 'guest', '--suite', 'trixie']],
  ])('refuses %j', async (argv) => {
    expect(await rejectionCode(base(argv))).toBe('usage');
  });

  it('refuses a suite for which no Python of the name is built', async () => {
    const tags = new Set(['python:3.13-slim-bookworm']);
    const made = makeBases({ engineSocket: '/absent.sock', tags, suite: 'trixie', onProgress: () => {} });
    expect(await rejectionCode(made)).toBe('usage');
  });
});
