import type { AgentPackage } from '../agent/types.ts';
import type { Finding } from '../wire/review-decision.ts';
import type { ReviewHost } from './config.ts';
import type { ReviewedAgainst } from './inputs.ts';
import { knowledgeOf } from './rules.ts';
import { ANALYSIS_DEADLINE_MS, analysePackage } from './static/run.ts';
import { nearest, type Similarity } from './static/similarity.ts';

/** What the guest found by itself. */
export interface Examined {
  findings: readonly Finding[];
  similarity: Similarity;
}

/** Step 4: static findings and similarity. @throws analysis_limit. */
export async function examine(
  agent: AgentPackage,
  against: ReviewedAgainst,
  host: ReviewHost,
): Promise<Examined> {
  const members = agent.files.map(({ path, bytes }) => ({ path, bytes }));
  const knowledge = knowledgeOf(against.rules, against.corpus);
  const { findings, fingerprints } = await analysePackage({ members, knowledge }, ANALYSIS_DEADLINE_MS);
  const codes = [...new Set(findings.map(({ code }) => code))];
  host.journal.write({ event: 'findings', findings: findings.length, codes });
  return { findings, similarity: nearest(fingerprints, against.corpus, agent.agentHash) };
}
