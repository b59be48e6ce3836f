import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importedFiles, namedPackages } from '../../../scripts/images/closure.ts';
import { IMAGE_ROLES, IMAGES } from '../../../scripts/images/roles.ts';
import { writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf } from '../../support/throws.ts';

const ROOT = join(import.meta.dirname, '../../..');

describe('importedFiles', () => {
  it('follows imports of values, types and calls, each file once', async () => {
    const root = scratchFolder();
    await writeFiles(root, {
      'guest/a.ts':
        "import { b } from './wire/b.ts';\nimport type { T } from './t.ts';\nimport { readFile } from 'node:fs';\n",
      'guest/wire/b.ts': "export { a } from '../a.ts';\nconst c = await import('../c.ts');\n",
      'guest/t.ts': '',
      'guest/c.ts': "import './d.ts';\n",
      'guest/d.ts': '',
      'guest/unused.ts': '',
    });
    expect(importedFiles(root, 'guest/a.ts')).toEqual(
      ['a', 'c', 'd', 't', 'wire/b'].map((name) => `guest/${name}.ts`),
    );
  });

  it('refuses a commit that lacks a file', async () => {
    const root = scratchFolder();
    await writeFiles(root, { 'a.ts': "import { b } from './b.ts';\n" });
    expect(codeOf(() => importedFiles(root, 'a.ts'))).toBe('build_source_invalid');
  });

  it.each(IMAGE_ROLES)('of the %s image stays in guest/, away from the other one', (role) => {
    const files = importedFiles(ROOT, IMAGES[role].entry);
    expect(files.filter((path) => !path.startsWith('guest/') || !existsSync(join(ROOT, path)))).toEqual([]);
    const other = role === 'eval' ? /^guest\/review[./]/ : /^guest\/(?:eval\.ts|golden|engine|trial|tracks)/;
    expect(files.filter((path) => other.test(path))).toEqual([]);
  });
});

describe('namedPackages', () => {
  it('finds imports, subpaths and files that are resolved by name, of the declared ones only', async () => {
    const root = scratchFolder();
    await writeFiles(root, {
      'a.ts':
        "import { z } from 'zod';\nimport x from '@noble/curves/p256';\nconst wasm = 'tree-sitter-bash/bash.wasm';\nimport 'node:fs';\n",
    });
    const declared = ['zod', '@noble/curves', 'tree-sitter-bash', 'yaml'];
    expect(namedPackages(root, ['a.ts'], declared)).toEqual(['@noble/curves', 'tree-sitter-bash', 'zod']);
  });
});
