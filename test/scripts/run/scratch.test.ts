import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeScratch, removeAbandoned } from '../../../scripts/run/scratch.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MODULE = join(import.meta.dirname, '../../../scripts/run/scratch.ts');

/** A process that has made a scratch folder with a key in it, and lives until it is killed. */
async function owner(root: string) {
  const script = `import { writeFileSync } from 'node:fs';
    import { makeScratch } from ${JSON.stringify(MODULE)};
    const folder = makeScratch(${JSON.stringify(root)});
    writeFileSync(folder + '/golden.key', 'secret');
    setInterval(() => {}, 1000);
    console.log(folder);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [folder] = await once(child.stdout, 'data');
  return {
    folder: String(folder).trim(),
    die: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

it('what a killed process left goes, keys and all; what a living one has stays', async () => {
  const root = scratchFolder();
  const [dead, alive, mine] = [await owner(root), await owner(root), makeScratch(root)];
  await dead.die();
  expect(await removeAbandoned(root)).toBe(1);
  expect([dead.folder, alive.folder, mine].map((folder) => existsSync(folder))).toEqual([false, true, true]);
  await alive.die();
  expect(await removeAbandoned(root)).toBe(1);
});

it('what is not known to be a folder of ours stays', async () => {
  const root = scratchFolder();
  const dead = await owner(root);
  await dead.die();
  const elsewhere = join(root, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, '.owner'), 'process:nobody');
  symlinkSync(elsewhere, join(root, 'cvm-eval-linked'));
  for (const name of ['cvm-eval-000000', 'cvm-eval-longer-one', 'cvm-eval-111111'])
    mkdirSync(join(root, name));
  writeFileSync(join(root, 'cvm-eval-longer-one', '.owner'), 'process:nobody');
  symlinkSync(join(elsewhere, '.owner'), join(root, 'cvm-eval-111111', '.owner'));
  expect(await removeAbandoned(root)).toBe(1);
  const kept = [
    'cvm-eval-linked',
    'cvm-eval-000000',
    'cvm-eval-longer-one',
    'cvm-eval-111111',
    'elsewhere/.owner',
  ];
  expect(kept.filter((name) => !existsSync(join(root, name)))).toEqual([]);
});

it.runIf(process.getuid?.() === 0)('a folder of another user stays, whatever it says', async () => {
  const { chownSync } = await import('node:fs');
  const root = scratchFolder();
  const dead = await owner(root);
  await dead.die();
  chownSync(dead.folder, 12_345, 12_345);
  expect(await removeAbandoned(root)).toBe(0);
  expect(existsSync(dead.folder)).toBe(true);
});
