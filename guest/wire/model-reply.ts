import { z } from 'zod';
import { parseForeignJson } from './foreign-json.ts';
import { MAX_EVIDENCE_PATHS, MAX_REASON_CODES, VERDICT_TOOL_NAME } from './model-request.ts';
import { isPinnedModel } from './pinned-model.ts';

/** 1 MiB in (spec/09). */
export const MAX_MODEL_REPLY_BYTES = 1024 * 1024;
const MAX_ARGUMENT_BYTES = 16 * 1024;
const DEPTH = 32;

export const verdictSchema = z.enum(['allow', 'reject', 'escalate']);
export type Verdict = z.infer<typeof verdictSchema>;
export const reasonCode = z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be a reason code');

/** What a reply was; everything but `verdict` is no verdict. */
export const MODEL_OUTCOMES = [
  'verdict',
  /** No endpoint was given: a local review only. */
  'not_asked',
  'not_json',
  'other_model',
  'choice_count',
  'no_tool_call',
  'several_tool_calls',
  'other_tool',
  'arguments_too_large',
  'arguments_invalid',
] as const;
export type ModelOutcome = (typeof MODEL_OUTCOMES)[number];

const argumentsSchema = z.strictObject({
  verdict: verdictSchema,
  reason_codes: z.array(reasonCode).max(MAX_REASON_CODES),
  evidence_paths: z.array(z.string().max(256)).max(MAX_EVIDENCE_PATHS),
});
type ModelVerdict = z.infer<typeof argumentsSchema>;

/** A reply as it was read: `verdict` is non-null if, and only if, `outcome` is 'verdict'. */
export interface ModelReading {
  outcome: ModelOutcome;
  verdict: ModelVerdict | null;
  /** The model and the provider as the reply names them, or null. */
  returnedModel: string | null;
  provider: string | null;
}

// Open where providers add members of their own; what decides is closed.
const replySchema = z.object({
  model: z.string(),
  provider: z.string().nullish(),
  choices: z.array(z.unknown()),
});
const choiceSchema = z.object({ message: z.object({ tool_calls: z.array(z.unknown()).nullish() }) });
const toolCallSchema = z.object({
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

function readJson(bytes: Uint8Array, maxBytes: number): unknown {
  try {
    return parseForeignJson(bytes, { maxBytes, maxDepth: DEPTH });
  } catch {
    return undefined;
  }
}

function readChoice(choices: readonly unknown[]): Pick<ModelReading, 'outcome' | 'verdict'> {
  const none = (outcome: ModelOutcome) => ({ outcome, verdict: null });
  if (choices.length !== 1) return none('choice_count');
  const choice = choiceSchema.safeParse(choices[0]);
  const calls = choice.success ? (choice.data.message.tool_calls ?? []) : [];
  if (calls.length === 0) return none('no_tool_call');
  if (calls.length > 1) return none('several_tool_calls');
  const call = toolCallSchema.safeParse(calls[0]);
  if (!call.success || call.data.function.name !== VERDICT_TOOL_NAME) return none('other_tool');
  const bytes = Buffer.from(call.data.function.arguments);
  if (bytes.length > MAX_ARGUMENT_BYTES) return none('arguments_too_large');
  const verdict = argumentsSchema.safeParse(readJson(bytes, MAX_ARGUMENT_BYTES));
  return verdict.success ? { outcome: 'verdict', verdict: verdict.data } : none('arguments_invalid');
}

/**
 * Reads the body of a reply with status 200. Never throws: what is not exactly one choice with one call of
 * our tool with arguments of its schema is an outcome without a verdict; prose is ignored (spec/09).
 */
export function readModelReply(bytes: Uint8Array, pinnedModel: string): ModelReading {
  const reply = replySchema.safeParse(readJson(bytes, MAX_MODEL_REPLY_BYTES));
  if (!reply.success) return { outcome: 'not_json', verdict: null, returnedModel: null, provider: null };
  const named = { returnedModel: reply.data.model, provider: reply.data.provider ?? null };
  if (!isPinnedModel(reply.data.model, pinnedModel)) {
    return { outcome: 'other_model', verdict: null, ...named };
  }
  return { ...readChoice(reply.data.choices), ...named };
}

/** The reading of a review that asked no model. */
export const NOT_ASKED: ModelReading = {
  outcome: 'not_asked',
  verdict: null,
  returnedModel: null,
  provider: null,
};
