import { describe, expect, it } from 'vitest';
import { allowedHosts } from '../../../guest/review/rules.ts';
import { shippedRules } from '../../support/review-agents.ts';

describe('allowedHosts', () => {
  it('are the listed ones of the section, and of no other', () => {
    const text = [
      '- `before.example`',
      '## Allowed network destinations',
      '- `a.example`: why',
      'prose `no.example`',
      '* `*.b.example`',
      '- `not a host`',
      '- `UPPER.example`',
      '## Reason codes',
      '- `after.example`',
    ].join('\r\n');
    expect(allowedHosts([{ path: 'a.md', text }])).toEqual(['*.b.example', 'a.example']);
  });

  it('are there in the shipped rules', () => {
    expect(allowedHosts(shippedRules)).toContain('openrouter.ai');
  });
});
