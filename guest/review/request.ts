import type { AgentPackage } from '../agent/types.ts';
import { EvaluatorError } from '../errors.ts';
import type { Assignment } from '../wire/assignment.ts';
import { encodeCanonical } from '../wire/canonical.ts';
import { sha256Hex } from '../wire/digest.ts';
import { encodeModelRequest, MAX_MODEL_REQUEST_BYTES, VERDICT_TOOL } from '../wire/model-request.ts';
import type { Finding, Findings } from '../wire/review-decision.ts';
import type { ReviewHost } from './config.ts';
import type { Examined } from './examine.ts';
import type { ReviewedAgainst } from './inputs.ts';
import { SYSTEM_PROMPT } from './prompt.ts';
import { userMessage } from './show.ts';
import { findingsOf } from './static/findings.ts';
import { shownPath } from './static/member.ts';

const DELIMITER_BYTES = 16;

/** The one request to the model, and the findings that stand when it is made. */
export interface PlannedRequest {
  bytes: Buffer;
  sha256: string;
  findings: Findings;
  findingsBytes: Buffer;
}

/** A delimiter that nothing of the submission can hold: drawn after it was sealed by its hash. */
function freshDelimiter(agent: AgentPackage, randomHex: (bytes: number) => string): string {
  for (;;) {
    const delimiter = randomHex(DELIMITER_BYTES);
    if (!agent.files.some(({ path, bytes }) => path.includes(delimiter) || bytes.includes(delimiter)))
      return delimiter;
  }
}

function truncatedFinding(agent: AgentPackage, path: string): Finding[] {
  const file = agent.files.find((one) => one.path === path);
  if (!file) return [];
  return [{ code: 'text_truncated', path: shownPath(path), line: 0, excerpt_sha256: sha256Hex(file.bytes) }];
}

/**
 * The body of the model call. What a submission says is only ever inside of one string of it.
 * @throws model_request_too_large.
 */
export function planRequest(
  { policy }: Pick<Assignment, 'policy'>,
  agent: AgentPackage,
  { rules }: ReviewedAgainst,
  { findings }: Examined,
  host: Pick<ReviewHost, 'randomHex'>,
): PlannedRequest {
  const delimiter = freshDelimiter(agent, host.randomHex);
  const { content, truncated } = userMessage({ rules, findings, members: agent.files, delimiter });
  const bytes = encodeModelRequest({
    messages: [
      { role: 'system', content: SYSTEM_PROMPT },
      { role: 'user', content },
    ],
    model: policy.model,
    provider: policy.routing,
    stream: false,
    tool_choice: 'auto',
    tools: [VERDICT_TOOL],
  });
  if (bytes.length > MAX_MODEL_REQUEST_BYTES) {
    throw new EvaluatorError(
      'model_request_too_large',
      `model request: ${bytes.length} bytes, at most ${MAX_MODEL_REQUEST_BYTES} are sent; shorten the rules`,
    );
  }
  const all = findingsOf([...findings, ...truncated.flatMap((path) => truncatedFinding(agent, path))]);
  return { bytes, sha256: sha256Hex(bytes), findings: all, findingsBytes: encodeCanonical(all) };
}
