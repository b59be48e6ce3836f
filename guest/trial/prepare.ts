import { type Access, removeAccess } from '../inference/access.ts';
import { execEnv } from './agent-env.ts';
import { sandboxEnv, sandboxTask } from './agent-sandbox.ts';
import { type Broker, openBroker } from './broker/open.ts';
import type { Role } from './labels.ts';
import { onBridge, openModelAccess } from './model-access.ts';
import type { Phases } from './phases.ts';
import { createSandbox, firstLifeTar, type Sandbox, startHolder } from './sandbox.ts';
import type {
  BrokeredAgent,
  ContainerAgent,
  TrialAgent,
  TrialContext,
  TrialTask,
  Upload,
} from './session.ts';

/** A started container of a rep, and what it was described by. */
export interface Started {
  sandbox: Sandbox;
  trial: TrialTask;
}

/** A rep whose containers run and whose agent has not been started. */
export interface Ready {
  execId: string;
  task: Started;
  /** Of a brokered agent, where its exec is; a container agent's is in the task's container. */
  own: (Started & { broker: Broker }) | null;
  /** The way to a model of whichever container the agent is in. */
  access: Access | null;
}

interface Making {
  context: TrialContext;
  rep: string;
  phases: Phases;
  access: Access | null;
}

/** Creates a container, fills it and starts its holder; one that fails on the way is removed. */
async function startContainer(
  { context, rep, phases }: Making,
  trial: TrialTask,
  files: readonly Upload[],
  role: Role,
): Promise<Started> {
  const created = await phases.time('create', () => createSandbox(context, trial, rep, role));
  return orRemoved(context, created.containerId, async () => {
    await phases.time('upload', () =>
      context.uploads(() => context.engine.putArchive(created.containerId, '/', firstLifeTar(trial, files))),
    );
    return { sandbox: await phases.time('start', () => startHolder(context, created, trial)), trial };
  });
}

/** What cannot be removed now is left to the sweep; the first failure is the one that counts. */
async function orRemoved<T>(context: TrialContext, containerId: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    await context.engine.remove(containerId).catch(() => undefined);
    throw error;
  }
}

/** Creates the agent's exec; a failure here started nothing and may be retried (spec/02). */
function createAgentExec(
  { context, phases, access }: Making,
  { sandbox, trial }: Started,
  agent: TrialAgent,
  env: readonly string[],
): Promise<string> {
  return phases.time('exec', () =>
    context.engine.createExec(sandbox.containerId, {
      command: agent.command,
      env: execEnv(
        ['TASK_INSTRUCTION_FILE=/task/instruction.md', 'AGENT_LOG_DIR=/logs/agent', ...env, ...agent.env],
        access?.env ?? [],
        trial.image.env,
      ),
      workingDir: trial.image.workdir,
      user: '0',
    }),
  );
}

async function prepareContainer(making: Making, trial: TrialTask, agent: ContainerAgent): Promise<Ready> {
  const { access } = making;
  const task = await startContainer(making, onBridge(trial, access), agent.files, 'trial');
  return orRemoved(making.context, task.sandbox.containerId, async () => {
    const env = [`TASK_WORKDIR=${trial.image.workdir}`];
    return { execId: await createAgentExec(making, task, agent, env), task, own: null, access };
  });
}

async function prepareBrokered(making: Making, trial: TrialTask, agent: BrokeredAgent): Promise<Ready> {
  const { context, phases, access } = making;
  const task = await startContainer(making, trial, [], 'trial');
  return orRemoved(context, task.sandbox.containerId, async () => {
    const started = await startContainer(
      making,
      onBridge(sandboxTask(trial, agent), access),
      agent.files,
      'sandbox',
    );
    return orRemoved(context, started.sandbox.containerId, async () => {
      const broker = await phases.time('exec', () =>
        openBroker(context, trial, task.sandbox, started.sandbox),
      );
      const env = [`TASK_WORKDIR=${trial.image.workdir}`, ...sandboxEnv()];
      return {
        execId: await createAgentExec(making, started, agent, env),
        task,
        own: { ...started, broker },
        access,
      };
    });
  });
}

/** Everything before the agent's exec: undone when it fails, so that it can be made again. @throws engine_*. */
export async function prepareRep(
  context: TrialContext,
  trial: TrialTask,
  agent: TrialAgent,
  rep: number,
  phases: Phases,
): Promise<Ready> {
  const name = `${trial.taskId}#${rep}`;
  const access = await phases.time('access', () => openModelAccess(context, trial, name));
  const making = { context, rep: name, phases, access };
  try {
    return agent.kind === 'container'
      ? await prepareContainer(making, trial, agent)
      : await prepareBrokered(making, trial, agent);
  } catch (error) {
    if (access !== null) await removeAccess(context.engine, access);
    throw error;
  }
}
