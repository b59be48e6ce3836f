import type { painter } from '../run/show.ts';
import type { ReviewSummary } from './outcome.ts';

const MOST_FINDINGS = 40;

/** The summary for a person: findings, what the model and the comparison said, the verdict last. */
export function reviewText(summary: ReviewSummary, out: string, paint: ReturnType<typeof painter>): string {
  const { findings, model, similarity, verdict } = summary;
  const shown = findings.slice(0, MOST_FINDINGS).map(({ code, path, line }) => `${path}:${line}  ${code}`);
  const more = findings.length - shown.length;
  const matched = similarity?.matched_agent_hash;
  const lines = [
    ...shown,
    ...(more > 0 ? [`and ${more} more; see report.json`] : []),
    ...(model ? [paint(`model: ${model.outcome}`, 'dim')] : []),
    ...(similarity
      ? [paint(`similarity: ${similarity.level}${matched ? ` with ${matched}` : ''}`, 'dim')]
      : []),
    verdict === null
      ? `${paint('no verdict', 'bad')}: ${summary.reason_code}; see journal.jsonl in ${out}`
      : `${paint(verdict, verdict === 'allow' ? 'good' : 'bad')}: ${summary.reason_codes.join(', ')}; review in ${out}`,
  ];
  return `${lines.join('\n')}\n`;
}
