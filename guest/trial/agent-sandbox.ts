import { BROKER_SOCKET, RUNTIME_FOLDER, runtimeFiles } from '../agent-runtime/files.ts';
import type { Need, Wanted } from './capacity.ts';
import type { BrokeredAgent, TrialTask } from './session.ts';

const MIB = 1024 * 1024;

/** What the sandbox of a brokered agent may use, beside the task's container; its CPU time is of one budget. */
export const SANDBOX_LIMITS = {
  nano_cpus: 0.5e9,
  memory_bytes: 1024 * MIB,
  storage_bytes: 1024 * MIB,
} as const;

/** What a rep needs of the VM while a brokered agent lives, beside what its task's container does. */
export function besideSandbox(need: Need): Wanted {
  return {
    ...need,
    memoryBytes: need.memoryBytes + SANDBOX_LIMITS.memory_bytes,
    sparableCpus: SANDBOX_LIMITS.nano_cpus / 1e9,
  };
}

/** The agent's own files and working directory. */
const AGENT_FOLDER = '/agent';

/**
 * The sandbox of a brokered agent, as a trial's container is described: the agent runtime's image, the agent's
 * files, the instruction, and our bridge; of the task, no file, no variable and no capability.
 */
export function sandboxTask(task: TrialTask, agent: BrokeredAgent): TrialTask {
  const { imageId, env } = agent.runtime;
  return {
    ...task,
    image: { id: imageId, env, workdir: AGENT_FOLDER, source: task.image.source },
    limits: { ...task.limits, ...SANDBOX_LIMITS },
    capAdd: [],
    env: {},
    files: [...runtimeFiles()],
    verifier: { ...task.verifier, mode: 'restart', artifactPaths: [] },
  };
}

/** What the agent's exec in the sandbox is told, beside the plan's variables. */
export function sandboxEnv(): string[] {
  return [`EVALUATOR_BROKER=${BROKER_SOCKET}`, `PYTHONPATH=${RUNTIME_FOLDER}/python`];
}
