import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { OWN_PYTHON } from './interpreters.ts';
import { BASE_SELECTION, pythonsOf } from './select.ts';
import { readServed } from './served.ts';
import { requestsOf, unservedOf } from './survey-script.ts';

/** The task folders in `dir`: `dir` itself when it is one, else its children. */
function taskFolders(dir: string): string[] {
  if (existsSync(join(dir, 'tests/test.sh'))) return [dir];
  const found = readdirSync(dir)
    .sort()
    .map((name) => join(dir, name))
    .filter((path) => existsSync(join(path, 'tests/test.sh')));
  if (found.length === 0)
    throw new EvaluatorError('usage', `${dir}: no task (a folder with tests/test.sh) in it`);
  return found;
}

type Finding = { task: string; unserved: string[]; extra: string[] };

function survey(folder: string): Finding {
  const read = (path: string) =>
    existsSync(join(folder, path)) ? readFileSync(join(folder, path), 'utf8') : '';
  const served = readServed();
  const script = read('tests/test.sh');
  const requests = requestsOf(script);
  const { python, apt } = requests;
  const own = [
    ...[...pythonsOf(requests, served)].filter((one) => one !== OWN_PYTHON).map((one) => `Python ${one}`),
    ...python.filter((spec) => !BASE_SELECTION.served.packages.has(spec)),
    ...apt.filter(hasPrograms),
  ];
  const unserved = unservedOf(script, read('environment/Dockerfile'), served);
  return { task: basename(folder), unserved, extra: [...new Set(own)] };

  function hasPrograms(name: string): boolean {
    return (served.apt.get(name)?.groups.length ?? 0) > 0;
  }
}

/** Prints, as Markdown, which tasks each set of packages serves, and what the rest miss. */
function main(dirs: readonly string[]): void {
  if (dirs.length === 0) throw new EvaluatorError('usage', 'usage: survey.ts DIR...');
  const findings = dirs.flatMap(taskFolders).map(survey);
  const open = findings.filter((one) => one.unserved.length > 0);
  const served = findings.filter((one) => one.unserved.length === 0);
  const sets = Map.groupBy(served, ({ extra }) => extra.join(', '));
  const names = (ones: readonly Finding[]) => ones.map(({ task }) => task).join(', ');
  console.log(`${findings.length} tasks, ${served.length} served\n`);
  console.log('| packages beside those of every volume | tasks |\n| --- | --- |');
  for (const [set, tasks] of [...sets].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`| ${set || 'none'} | ${names(tasks)} (${tasks.length}) |`);
  console.log(`\n**Not served** (${open.length}):\n\n| task | what is missing |\n| --- | --- |`);
  for (const one of open) console.log(`| ${one.task} | ${one.unserved.join('; ')} |`);
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
