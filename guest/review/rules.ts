import type { Corpus, RuleFile } from '../wire/review-inputs.ts';
import type { Knowledge } from './static/detect/context.ts';

const HEADING = /^#{1,6}\s+(.*?)\s*#*\s*$/;
const DESTINATIONS = 'allowed network destinations';
/** A list item that begins with a host in code marks: `- \`example.org\`: why`. */
const HOST_ITEM = /^\s*[-*]\s+`((?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)+)`/;

/**
 * The hosts that the rules allow an agent: the items of every section "Allowed network destinations". The same
 * list that the model reads.
 */
export function allowedHosts(rules: readonly RuleFile[]): string[] {
  const hosts = new Set<string>();
  for (const { text } of rules) {
    let listed = false;
    for (const line of text.split(/\r?\n/)) {
      const heading = HEADING.exec(line)?.[1];
      if (heading !== undefined) listed = heading.toLowerCase() === DESTINATIONS;
      const host = listed ? HOST_ITEM.exec(line)?.[1] : undefined;
      if (host !== undefined) hosts.add(host);
    }
  }
  return [...hosts].sort();
}

/** What the detectors need to know of rules and corpus. */
export function knowledgeOf(rules: readonly RuleFile[], corpus: Corpus): Knowledge {
  return {
    allowedHosts: allowedHosts(rules),
    taskIds: new Set(corpus.tasks.map(({ task_id }) => task_id.toLowerCase())),
    instructionDigests: new Set(corpus.tasks.map(({ instruction_sha256 }) => instruction_sha256)),
    fragments: new Set(corpus.solution_fragments),
  };
}
