import { EvaluatorError } from '../errors.ts';
import type { AgentFile, AgentManifest } from './types.ts';

/** At the top of a package without agent.yaml: an agent written against Harbor's interface. */
export const PYTHON_AGENT_NAME = 'agent.py';

/** Runs the class `Agent` of a file (guest/agent-runtime/python). */
const COMMAND = ['python3', '-m', 'evaluator_harbor', `/agent/${PYTHON_AGENT_NAME}:Agent`];

/**
 * `class Agent` at the very beginning of a line. A class that is assigned, imported or made inside a block is not
 * seen, and one inside a string is: nothing of the agent is run or parsed to find out.
 */
const TOP_LEVEL_CLASS = /^class Agent[ \t]*[(:]/m;

/**
 * What stands in for the `agent.yaml` of a package whose top has an `agent.py`: brokered, with the class `Agent`
 * of that file, and whichever variables the plan allows.
 * @throws agent_manifest_invalid when the file has no such class.
 */
export function pythonAgentManifest(agent: AgentFile): AgentManifest {
  if (!TOP_LEVEL_CLASS.test(agent.bytes.toString('utf8'))) {
    throw new EvaluatorError(
      'agent_manifest_invalid',
      `${PYTHON_AGENT_NAME}: no line begins with \`class Agent\`; name the agent's class so, or add an agent.yaml ` +
        'of kind brokered whose command names it (docs/agents.md)',
    );
  }
  return { schema_version: 1, kind: 'brokered', command: COMMAND, env: 'plan' };
}
