import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { REFUSALS } from '../../guest/inference/proxy/refusal.ts';
import { inferenceSchema } from '../../guest/wire/inference.ts';
import { parseYaml } from '../../guest/wire/yaml.ts';

const page = readFileSync(new URL('../../docs/inference.md', import.meta.url), 'utf8');

it('docs/inference.md lists every refusal of the proxy with its status, and no other', () => {
  const rows = page.matchAll(/^\| (`[a-z_`, ]+`) \| ([0-9, ]+) \|/gm);
  const listed = [...rows].flatMap(([, codes = '', statuses = '']) => {
    const status = statuses.split(', ').map(Number);
    return codes.split(', ').map((code, i) => [code.replaceAll('`', ''), status[i] ?? status[0]]);
  });
  expect(Object.fromEntries(listed)).toEqual(REFUSALS);
});

it('the section that it shows to operators can be read', () => {
  const [, shown = ''] = /```yaml\n(inference:\n[\s\S]*?)```/.exec(page) ?? [];
  const { inference } = parseYaml(Buffer.from(shown), 'page', 'mechanism_invalid') as { inference: unknown };
  expect(inferenceSchema.parse(inference)).toMatchObject({ models: ['vendor/model-1'] });
});
