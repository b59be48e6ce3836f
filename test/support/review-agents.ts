import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseAgentPackage } from '../../guest/agent/package.ts';
import { weigh } from '../../guest/review/decide.ts';
import { OWN_POLICY } from '../../guest/review/prompt.ts';
import { planRequest } from '../../guest/review/request.ts';
import { knowledgeOf } from '../../guest/review/rules.ts';
import type { Knowledge } from '../../guest/review/static/detect/context.ts';
import { type Member, staticFindings } from '../../guest/review/static/findings.ts';
import { loadParse } from '../../guest/review/static/parser.ts';
import { fingerprintsOf, nearest } from '../../guest/review/static/similarity.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { routingTo } from '../../guest/wire/model-request.ts';
import type { Decision, FindingCode } from '../../guest/wire/review-decision.ts';
import { type Corpus, parseCorpus, parseRulesBundle, type RuleFile } from '../../guest/wire/review-inputs.ts';
import { zipFiles } from '../../scripts/agent/zip-files.ts';
import { buildCorpus } from '../../scripts/review/corpus.ts';
import { bundleRules } from '../../scripts/review/rules.ts';
import { completion } from './chat-double.ts';
import { generatedAgents } from './review-agents-generated.ts';

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

/** An agent of our own: a file of `test/fixtures/review/<finding>/`, or a generated one. */
export interface ReviewAgent {
  name: string;
  finding: FindingCode;
  kind: 'plain' | 'obfuscated' | 'benign';
  members: Member[];
}

const MANIFEST: Member = {
  path: 'agent.yaml',
  bytes: Buffer.from('schema_version: 1\nkind: container\ncommand: ["/agent/run"]\nenv: []\n'),
};

function reviewAgent(finding: string, name: string, files: readonly Member[]): ReviewAgent {
  const [, kind = 'plain'] = /^(obfuscated|benign)_/.exec(name) ?? [];
  return {
    name: `${finding}/${name}`,
    finding: finding as FindingCode,
    kind: kind as ReviewAgent['kind'],
    members: [...(files.some(({ path }) => path === MANIFEST.path) ? [] : [MANIFEST]), ...files],
  };
}

const fixtures = readdirSync(FIXTURES, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .sort()
  .map((file) => {
    const name = basename(file);
    return reviewAgent(basename(dirname(file)), name, [{ path: name, bytes: readFileSync(file) }]);
  });

export const reviewAgents: readonly ReviewAgent[] = [
  ...fixtures,
  ...generatedAgents.map(({ finding, name, files }) => reviewAgent(finding, name, membersOf(files))),
];

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

const allowing = Buffer.from(JSON.stringify(completion()));

/**
 * The decision over a package, as the guest comes to it with a model that allows: packed, opened, analysed,
 * compared, shown and weighed. Only the analysis' own thread is left out.
 */
export async function decisionOf(members: readonly Member[]): Promise<Decision> {
  const zip = await zipFiles(
    members.map(({ path, bytes }) => ({ path, bytes: Buffer.from(bytes), executable: true })),
  );
  const agent = await parseAgentPackage(zip);
  const examined = {
    findings: staticFindings(agent.files, { parse, knowledge }),
    similarity: nearest(fingerprintsOf(agent.files), taskCorpus, agent.agentHash),
  };
  const order = { policy: { model: completion().model, routing: routingTo('vendor'), ...OWN_POLICY } };
  const against = { rules: shippedRules, corpus: taskCorpus };
  const planned = planRequest(order, agent, against, examined, {
    randomHex: (bytes) => sha256Hex('delimiter').slice(0, bytes * 2),
  });
  return weigh(order, planned, allowing, examined).decision;
}
