import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { isBuiltinAgent } from '../agent/builtin.ts';
import { parseOptions, required } from '../cli/arguments.ts';
import { existingPath, outputFolder, timeName } from '../cli/paths.ts';
import { ROOT } from '../run/simulator.ts';

const KEY_VARIABLE = 'OPENROUTER_API_KEY';
const DEFAULT_MODEL = 'openai/gpt-4.1-mini';
const DEFAULT_PROVIDER = 'openai';

export const USAGE = `evaluator review --agent ZIP|DIR [--rules DIR] [--corpus DIR] [--model-endpoint URL]
                 [--model NAME] [--provider NAME] [--out DIR] [--json]
       evaluator review --revoke FILE --reason TEXT`;

export const HELP = `usage: ${USAGE}

Reviews an agent as the review image does: a simulated TDX machine, a challenge and the guest run as separate
processes. The agent is read, never run.

  --agent WHAT          a folder or ZIP with agent.yaml
  --rules DIR           the rules, Markdown files (default: those shipped in .rules)
  --corpus DIR          what it is compared with: earlier agents (ZIPs, or folders with agent.yaml) and plain
                        tasks (folders with task.toml) (default: nothing)
  --model-endpoint URL  the chat-completions address to ask once, with the key in ${KEY_VARIABLE}
                        (default, or without a key: no model is asked, so that nothing is allowed)
  --model NAME          the model that must answer (default ${DEFAULT_MODEL})
  --provider NAME       the provider that must serve it (default ${DEFAULT_PROVIDER})
  --out DIR             where the accepted review and all that \`run --review\` reads is left
                        (default out/review-<time>)
  --json                one JSON object on stdout
  --revoke FILE         takes an accepted review back, a review.json with revocations.json beside it: it admits no
                        run from then on, and no RESULT of a run that it admitted is accepted
  --reason TEXT         why; kept in revocations.json

exit codes: 0 allow, 1 reject or escalate, 2 refused input, 3 verification failed, 5 aborted (no verdict)
`;

/** The one model call of a review; null: none is made. */
export interface ModelAccess {
  endpoint: string;
  /** Goes to the guest's environment and nowhere else. */
  apiKey: string;
}

export interface ReviewCliOptions {
  agent: string;
  rules: string;
  corpus: string | null;
  model: string;
  provider: string;
  access: ModelAccess | null;
  out: string;
  format: 'json' | 'text';
}

function modelAccess(endpoint: string | undefined, env: NodeJS.ProcessEnv): ModelAccess | null {
  if (endpoint === undefined) return null;
  if (!URL.canParse(endpoint)) {
    throw new EvaluatorError('usage', `review: --model-endpoint ${JSON.stringify(endpoint)}: not a URL`);
  }
  const apiKey = env[KEY_VARIABLE] ?? '';
  return apiKey === '' ? null : { endpoint, apiKey };
}

/** Reads the verb's options; null when help was asked for. @throws usage. */
export function readReviewOptions(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  nowMs: number,
): ReviewCliOptions | null {
  const values = parseOptions(
    argv,
    {
      agent: { type: 'string' },
      rules: { type: 'string', default: join(ROOT, '.rules') },
      corpus: { type: 'string' },
      'model-endpoint': { type: 'string' },
      model: { type: 'string', default: DEFAULT_MODEL },
      provider: { type: 'string', default: DEFAULT_PROVIDER },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
    USAGE,
  );
  if (values.help) return null;
  const agent = required(values.agent, 'agent', USAGE);
  if (isBuiltinAgent(agent)) {
    throw new EvaluatorError(
      'usage',
      `review: --agent ${agent} only checks tasks: there is nothing to review`,
    );
  }
  const existing = (option: string, path: string) => existingPath('review', option, path);
  return {
    agent: existing('agent', agent),
    rules: existing('rules', values.rules),
    corpus: values.corpus === undefined ? null : existing('corpus', values.corpus),
    model: values.model,
    provider: values.provider,
    access: modelAccess(values['model-endpoint'], env),
    out: outputFolder('review', values.out ?? `out/review-${timeName(nowMs)}`),
    format: values.json ? 'json' : 'text',
  };
}
