import { chmod, mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseAgentPackage } from '../../../guest/agent/package.ts';
import { BUILTIN_AGENTS, builtinAgent, isBuiltinAgent } from '../../../scripts/agent/builtin.ts';
import { zipDirectory } from '../../../scripts/agent/zip-directory.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

const MANIFEST = 'schema_version: 1\nkind: container\ncommand: [/agent/run]\nenv: []\n';
let folder: string;

beforeEach(async () => {
  folder = scratchFolder();
});

async function writeAgent(directory: string, order: readonly string[]): Promise<void> {
  for (const path of order) {
    await mkdir(join(directory, path, '..'), { recursive: true });
    await writeFile(join(directory, path), path === 'agent.yaml' ? MANIFEST : `content of ${path}`);
  }
  await chmod(join(directory, 'run'), 0o755);
}

describe('zipDirectory', () => {
  it('gives the same bytes for the same files, whenever and in whatever order they were written', async () => {
    const [one, two] = [join(folder, 'one'), join(folder, 'two')];
    await writeAgent(one, ['agent.yaml', 'run', 'lib/a', 'lib/b', 'lib.txt']);
    await writeAgent(two, ['lib.txt', 'lib/b', 'run', 'lib/a', 'agent.yaml']);
    await utimes(join(two, 'run'), 1_000_000_000, 1_000_000_000);
    await chmod(join(two, 'lib/a'), 0o600);
    expect((await zipDirectory(one)).equals(await zipDirectory(two))).toBe(true);
  });

  it('makes a package that opens, with modes kept', async () => {
    await writeAgent(folder, ['agent.yaml', 'run', 'lib/a']);
    const { files } = await parseAgentPackage(await zipDirectory(folder));
    expect(files.map(({ path, executable }) => [path, executable])).toEqual([
      ['agent.yaml', false],
      ['lib/a', false],
      ['run', true],
    ]);
  });

  it('notices every change', async () => {
    await writeAgent(folder, ['agent.yaml', 'run']);
    const before = await zipDirectory(folder);
    await chmod(join(folder, 'run'), 0o644);
    expect((await zipDirectory(folder)).equals(before)).toBe(false);
  });

  it('refuses links to files and folders, and more than a package may weigh', async () => {
    await writeAgent(folder, ['agent.yaml', 'run']);
    for (const target of ['run', '/etc', 'nowhere']) {
      await symlink(target, join(folder, 'link'));
      expect(await rejectionCode(zipDirectory(folder))).toBe('agent_package_refused');
      await rm(join(folder, 'link'));
    }
    await writeFile(join(folder, 'big'), Buffer.alloc(1024 * 1024 + 1));
    expect(await rejectionCode(zipDirectory(folder))).toBe('agent_package_refused');
  });
});

describe('builtinAgent', () => {
  it('has a fixed hash for each, and they differ', async () => {
    const hashes = await Promise.all(
      BUILTIN_AGENTS.map(async (name) => (await builtinAgent(name)).agentHash),
    );
    expect(new Set(hashes).size).toBe(BUILTIN_AGENTS.length);
    expect(hashes.slice(0, 2)).toEqual([
      '69ff5111cf1615e6dff393e8180c7e0f72f1db7f9e0d880c88a7eb653f0d29ff',
      'b606e2cbaa930cc4cdcd3fe56b7c03b6fa41c61969d035696e45b42dbb807ae5',
    ]);
  });

  it('needs nothing of the image but what the evaluator brings, unless it audits', async () => {
    for (const name of ['oracle', 'nop'] as const) {
      expect((await builtinAgent(name)).manifest.command[0]).toBe('/opt/evaluator/busybox');
    }
  });

  it('knows its names and nothing inherited', () => {
    expect(['oracle', 'nop', 'constructor', 'Oracle'].map(isBuiltinAgent)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
