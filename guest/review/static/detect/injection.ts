import { textsOf } from '../value.ts';
import type { Detector } from './context.ts';

const REVIEWER =
  '(?:reviewer|auditor|code review(?:er)?|review(?:ing)? (?:model|agent|system|ai|llm)|security review(?:er)?|grader|judge)';
const SUBJECT = '(?:agent|submission|package|code|repository|program|file|project)';

/** Text that speaks to whoever reviews, not to a user or to the agent's own model. */
const ADDRESSES: readonly RegExp[] = [
  new RegExp(
    `\\b(?:note|notice|message|attention|hint|instructions?|memo)\\b.{0,20}\\b(?:to|for) (?:the |all |any )?(?:ai |llm |automated |human )?${REVIEWER}`,
  ),
  new RegExp(`\\b(?:dear|hello|hi|hey|attention),? (?:ai |llm |automated )?${REVIEWER}`),
  new RegExp(
    `\\b(?:if|as|when) you(?:'re| are)? (?:an? |the )?(?:ai |llm |automated |language )*(?:${REVIEWER}|model)?,? ?(?:reviewing|auditing|grading|judging|analy[sz]ing) this ${SUBJECT}`,
  ),
  new RegExp(`\\b(?:ai|llm|automated) ${REVIEWER}s?\\b.{0,40}\\b(?:must|should|please|will|shall|may)\\b`),
  /\bsubmit_verdict\b/,
  /\bpolicy_passed\b/,
  /"verdict"\s*:\s*"?allow/,
  /\bverdict\s*(?:=|:|is|of|must be|should be)\s*["'`]?allow(?:ed)?\b/,
  /\b(?:return|give|answer|reply|respond|output|choose|issue)\b.{0,30}\bverdict\b.{0,20}\b(?:allow|approv|accept|pass|safe)/,
  /\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|system|review(?:er)?|all|your)\b.{0,25}\b(?:instruction|rule|prompt|polic|direction|guideline)/,
  new RegExp(`\\b(?:approve|allow|accept|pass|whitelist|clear) this ${SUBJECT}\\b`),
  new RegExp(
    `\\bthis ${SUBJECT} (?:is|was|has been) (?:already |pre-?|fully |manually )*(?:approved|reviewed|verified|audited|cleared|vetted)\\b`,
  ),
  new RegExp(
    `\\b(?:mark|flag|classify|label|treat|rate|consider) this ${SUBJECT} (?:as )?(?:safe|allowed|clean|benign|compliant|trusted)\\b`,
  ),
  /\b(?:end|close) of (?:the )?(?:submission|untrusted (?:text|data|content))\b/,
  // A plain <system> is what an agent writes to its own model.
  /<\/?(?:system|review)[ _-]?(?:prompt|message|instructions?)>/,
  /<\/?(?:untrusted|submission)(?:[ _-]?(?:text|data|content))?>/,
];

const INVISIBLE = /[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]/g;
/** ASCII in a plane that no font shows. */
const TAGS = /[\u{E0020}-\u{E007E}]/gu;
const HOMOGLYPHS: Readonly<Record<string, string>> = {
  а: 'a',
  е: 'e',
  о: 'o',
  р: 'p',
  с: 'c',
  у: 'y',
  х: 'x',
  і: 'i',
  ѕ: 's',
  ԁ: 'd',
  ɡ: 'g',
  ı: 'i',
};

function fold(text: string): string {
  return (
    text
      .replaceAll(TAGS, (c) => String.fromCharCode((c.codePointAt(0) ?? 0) - 0xe0000))
      .replaceAll(INVISIBLE, '')
      // Words of tools, not of people.
      .replaceAll(
        /\b(?:type|pyright|mypy|pylint|noqa|eslint|istanbul|prettier|ts)[ :-]*(?:ignore|expect|disable)\S*/gi,
        ' ; ',
      )
      .normalize('NFKC')
      .toLowerCase()
      .replaceAll(/[\u0250-\u052f]/g, (c) => HOMOGLYPHS[c] ?? c)
      .replaceAll(/[’‘]/g, "'")
      // White space, and the marks of quotes, comments and emphasis beside it.
      .replaceAll(/\n[ \t]*>+/g, '\n')
      .replaceAll(/[\s*#/_~-]+/g, (run) => (/\s/.test(run) ? ' ' : run))
  );
}

/** Longer texts are read in overlapping windows, so that each expression stays cheap. */
const WINDOW = 65_536;
const OVERLAP = 512;

/** True for a text that addresses the reviewer, or that hides words in characters which nobody sees. */
export function addressesReviewer(text: string): boolean {
  if ((text.match(TAGS)?.length ?? 0) >= 4) return true;
  for (let at = 0; at < text.length; at += WINDOW - OVERLAP) {
    const folded = fold(text.slice(at, at + WINDOW));
    if (ADDRESSES.some((form) => form.test(folded))) return true;
  }
  return false;
}

export const detectInjection: Detector = (fact) => {
  const texts = fact.kind === 'prose' ? [fact.text] : fact.kind === 'text' ? textsOf(fact.value) : [];
  return texts.some(addressesReviewer) ? ['prompt_injection'] : [];
};
