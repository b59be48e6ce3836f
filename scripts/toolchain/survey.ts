import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { readServed } from './served.ts';
import { type Finding, surveyTask } from './survey-script.ts';

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

function survey(folder: string): Finding & { task: string } {
  const read = (path: string) =>
    existsSync(join(folder, path)) ? readFileSync(join(folder, path), 'utf8') : '';
  const finding = surveyTask(read('tests/test.sh'), read('environment/Dockerfile'), readServed());
  return { task: basename(folder), ...finding };
}

/** Prints, as Markdown, which tasks the front serves, which need an image with a Python, and what the rest miss. */
function main(dirs: readonly string[]): void {
  if (dirs.length === 0) throw new EvaluatorError('usage', 'usage: survey.ts DIR...');
  const findings = dirs.flatMap(taskFolders).map(survey);
  const open = findings.filter((one) => one.unserved.length > 0);
  const served = findings.filter((one) => one.unserved.length === 0);
  const named = (image: Finding['image']) => served.filter((one) => one.image === image);
  const list = (ones: readonly { task: string }[]) => ones.map((one) => one.task).join(', ') || 'none';
  const bare = named('no python named');
  console.log(`${findings.length} tasks\n`);
  console.log(`**Served** (${named('python').length}): ${list(named('python'))}\n`);
  console.log(`**Served where the base image has python3** (${bare.length}): ${list(bare)}\n`);
  console.log(`**Not yet served** (${open.length}):\n\n| task | what is missing |\n| --- | --- |`);
  for (const one of open) console.log(`| ${one.task} | ${one.unserved.join('; ')} |`);
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
