import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { knowledgeOf } from '../../guest/review/rules.ts';
import type { Knowledge } from '../../guest/review/static/detect/context.ts';
import { type Member, staticFindings } from '../../guest/review/static/findings.ts';
import { loadParse } from '../../guest/review/static/parser.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { FindingCode } from '../../guest/wire/review-decision.ts';
import { type Corpus, parseCorpus, parseRulesBundle, type RuleFile } from '../../guest/wire/review-inputs.ts';
import { buildCorpus } from '../../scripts/review/corpus.ts';
import { bundleRules } from '../../scripts/review/rules.ts';

const ROOT = join(import.meta.dirname, '../..');
const FIXTURES = join(ROOT, 'test/fixtures/review');

const rulesBytes = bundleRules(join(ROOT, '.rules'));
const corpusBytes = await buildCorpus(join(ROOT, 'task-cache'));
const revision = (JSON.parse(rulesBytes.toString()) as { revision_id: string }).revision_id;

/** The shipped rules, and a corpus of the shipped tasks. */
export const shippedRules: RuleFile[] = parseRulesBundle(rulesBytes, {
  snapshot_sha256: sha256Hex(rulesBytes),
  revision_id: revision,
});
export const taskCorpus: Corpus = parseCorpus(corpusBytes, sha256Hex(corpusBytes));
export const reviewInputBytes = { rules: rulesBytes, corpus: corpusBytes, revisionId: revision };
export const knowledge: Knowledge = knowledgeOf(shippedRules, taskCorpus);
export const parse = await loadParse();

/** An agent of one file of `test/fixtures/review`, named `<finding>/<what>.<extension>`. */
export interface ReviewAgent {
  name: string;
  finding: FindingCode;
  isBenign: boolean;
  members: Member[];
}

const MANIFEST = Buffer.from('schema_version: 1\nkind: container\ncommand: ["/agent/run"]\nenv: []\n');

export const reviewAgents: ReviewAgent[] = readdirSync(FIXTURES, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .sort()
  .map((file) => ({
    name: file.slice(FIXTURES.length + 1),
    finding: basename(dirname(file)) as FindingCode,
    isBenign: basename(file).startsWith('benign_'),
    members: [
      { path: 'agent.yaml', bytes: MANIFEST },
      { path: basename(file), bytes: readFileSync(file) },
    ],
  }));

/** Members of a package from texts. */
export function membersOf(files: Readonly<Record<string, string | Buffer>>): Member[] {
  return Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(content) }));
}

/** The codes that are found, ascending, each once. */
export function codesIn(members: readonly Member[], known: Knowledge = knowledge): FindingCode[] {
  return [...new Set(staticFindings(members, { parse, knowledge: known }).map(({ code }) => code))].sort();
}

/** The codes found in Python source. */
export const codesInPython = (source: string): FindingCode[] => codesIn(membersOf({ 'a.py': source }));
