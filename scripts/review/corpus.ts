import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAgentPackage } from '../../guest/agent/package.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { fragmentsOf } from '../../guest/review/static/detect/fragments.ts';
import { fingerprintsOf } from '../../guest/review/static/similarity.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { type Corpus, parseCorpus } from '../../guest/wire/review-inputs.ts';
import { zipDirectory } from '../agent/zip-directory.ts';

type Submission = Corpus['submissions'][number];
type Task = Corpus['tasks'][number];

const ascending = <T>(items: readonly T[], key: (item: T) => string): T[] =>
  [...new Map(items.map((item) => [key(item), item])).entries()]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, item]) => item);

async function submissionOf(zip: Buffer): Promise<Submission | null> {
  const { agentHash, files } = await parseAgentPackage(zip);
  const fingerprints = fingerprintsOf(files);
  return fingerprints.length === 0 ? null : { agent_hash: agentHash, fingerprints };
}

function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** What two tasks' solutions share is nobody's answer, and is left out. */
function ownFragments(solutions: readonly ReadonlySet<string>[]): string[] {
  const count = new Map<string, number>();
  for (const one of solutions.flatMap((fragments) => [...fragments]))
    count.set(one, (count.get(one) ?? 0) + 1);
  return [...count].filter(([, times]) => times === 1).map(([fragment]) => fragment);
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch (cause) {
    throw new EvaluatorError('usage', `--corpus ${directory}: not a folder that can be read`, { cause });
  }
}

/**
 * What an agent is compared with, from a folder: earlier agents (ZIPs, or folders with agent.yaml) and plain
 * tasks (folders with task.toml). Anything else in it is not looked at. Null: nothing.
 * @returns the exact bytes. @throws usage, agent_package_refused, schema_invalid.
 */
export async function buildCorpus(directory: string | null): Promise<Buffer> {
  const submissions: Submission[] = [];
  const tasks: Task[] = [];
  const solutions: Set<string>[] = [];
  for (const entry of directory === null ? [] : entriesOf(directory)) {
    const isFolder = statSync(entry).isDirectory();
    if (isFolder && existsSync(join(entry, 'task.toml'))) {
      const instruction = readFileSync(join(entry, 'instruction.md'));
      tasks.push({
        task_id: entry.slice(entry.lastIndexOf('/') + 1),
        instruction_sha256: sha256Hex(instruction),
      });
      const texts = filesBelow(join(entry, 'solution')).map((file) => readFileSync(file, 'utf8'));
      solutions.push(new Set(texts.flatMap(fragmentsOf)));
    } else if (isFolder ? existsSync(join(entry, 'agent.yaml')) : entry.endsWith('.zip')) {
      const submission = await submissionOf(isFolder ? await zipDirectory(entry) : readFileSync(entry));
      if (submission) submissions.push(submission);
    }
  }
  const corpus: Corpus = {
    schema_version: 1,
    algorithm: 'winnow/v1',
    submissions: ascending(submissions, ({ agent_hash }) => agent_hash),
    tasks: ascending(tasks, ({ task_id }) => task_id),
    solution_fragments: ascending(ownFragments(solutions), (fragment) => fragment),
  };
  const bytes = encodeCanonical(corpus);
  parseCorpus(bytes, sha256Hex(bytes));
  return bytes;
}
