import { sha256Hex } from '../../wire/digest.ts';
import { type Finding, type FindingCode, type Findings, MAX_FINDINGS } from '../../wire/review-decision.ts';
import { analyse, type Found } from './analyse.ts';
import type { Knowledge } from './detect/context.ts';
import { shownPath, textOfMember } from './member.ts';
import { newBudget, type Parse } from './parser.ts';
import { linesOf } from './source.ts';

/** A member of a package: what is needed of an AgentFile. */
export interface Member {
  path: string;
  bytes: Uint8Array;
}

/** A suspicion says nothing beside its proof. */
const STRONGER: Partial<Record<FindingCode, readonly FindingCode[]>> = {
  mentions_protected_path: [
    'reads_hidden_tests',
    'reads_verifier_output',
    'reads_probe_file',
    'engine_socket_access',
    'guest_agent_access',
  ],
  mentions_task_identity: ['branches_on_task_identity'],
};
/** Findings of one kind in one member that are listed; the rest would say nothing more. */
const MAX_ALIKE = 20;

function located(member: Member, found: readonly Found[]): Finding[] {
  const lines = linesOf(textOfMember(member.bytes) ?? '');
  const path = shownPath(member.path);
  const whole = sha256Hex(member.bytes);
  const seen = new Map<string, number>();
  const unique = new Map(found.map((one) => [`${one.code} ${one.line}`, one]));
  const has = (line: number, codes: readonly FindingCode[]) =>
    codes.some((code) => unique.has(`${code} ${line}`));
  return [...unique.values()]
    .filter(({ code, line }) => !has(line, STRONGER[code] ?? []))
    .sort((a, b) => a.line - b.line)
    .flatMap(({ code, line }) => {
      const alike = (seen.get(code) ?? 0) + 1;
      seen.set(code, alike);
      if (alike > MAX_ALIKE) return [];
      const excerpt = lines[line - 1];
      return [{ code, path, line, excerpt_sha256: excerpt === undefined ? whole : sha256Hex(excerpt) }];
    });
}

/** Brings findings in the order of the document. */
function sortFindings(findings: readonly Finding[]): Finding[] {
  const key = ({ path, line, code }: Finding) => `${path}\0${String(line).padStart(10, '0')}\0${code}`;
  const unique = new Map(findings.map((one) => [key(one), one]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

/** Keeps a list within the document's bound, with every code that was found. */
export function findingsOf(findings: readonly Finding[]): Findings {
  const sorted = sortFindings(findings);
  if (sorted.length <= MAX_FINDINGS) return { schema_version: 1, findings: sorted };
  const byCode = new Map<string, number>();
  const kept = sorted.filter(({ code }) => {
    const count = (byCode.get(code) ?? 0) + 1;
    byCode.set(code, count);
    return count <= MAX_FINDINGS / 20;
  });
  return { schema_version: 1, findings: kept.slice(0, MAX_FINDINGS) };
}

/**
 * The static findings of a package: computed from its syntax trees, the same on every machine (spec/09).
 * @param members ascending by path.
 */
export function staticFindings(
  members: readonly Member[],
  tools: { parse: Parse; knowledge: Knowledge },
): Finding[] {
  const budget = newBudget();
  return members.flatMap((member) => {
    const text = textOfMember(member.bytes);
    if (text === null) return located(member, [{ code: 'member_not_text', line: 0 }]);
    return located(member, analyse({ path: member.path, text }, { ...tools, budget }));
  });
}
