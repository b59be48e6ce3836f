import { textsOf } from '../value.ts';
import type { Detector, Knowledge } from './context.ts';

const MIN_PART = 6;
const TESTERS = new Set([
  'startswith',
  'endswith',
  'startsWith',
  'endsWith',
  'includes',
  'match',
  'search',
  'fullmatch',
  'indexOf',
  'find',
  'index',
  'get',
  'equals',
]);

function isIdentity(text: string, { taskIds, instructionDigests }: Knowledge): boolean {
  const name = text.trim().toLowerCase();
  return taskIds.has(name) || instructionDigests.has(name);
}

/** A long enough text that is a part of a digest of a known instruction. */
function isDigestPart(text: string, { instructionDigests }: Knowledge): boolean {
  if (!/^[0-9a-f]{8,63}$/.test(text)) return false;
  for (const digest of instructionDigests) if (digest.startsWith(text)) return true;
  return false;
}

/** Code that asks which task it is at: by name, or by a digest of the instruction. */
export const detectIdentity: Detector = (fact, knowledge) => {
  const isOne = (text: string) => isIdentity(text, knowledge) || isDigestPart(text, knowledge);
  switch (fact.kind) {
    case 'compare':
      return fact.operands.flatMap((one) => textsOf(one)).some(isOne) ? ['branches_on_task_identity'] : [];
    case 'call': {
      const method = fact.callee.slice(fact.callee.lastIndexOf('.') + 1);
      if (!fact.callee.includes('.') || !TESTERS.has(method)) return [];
      return fact.args.flatMap((one) => textsOf(one)).some(isOne) ? ['branches_on_task_identity'] : [];
    }
    case 'key':
    case 'text':
      return textsOf(fact.value).some((text) => text.length >= MIN_PART && isOne(text))
        ? ['mentions_task_identity']
        : [];
    default:
      return [];
  }
};
