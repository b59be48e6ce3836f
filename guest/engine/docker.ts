import { isEvaluatorError } from '../errors.ts';
import { DEADLINES_MS } from './deadline.ts';
import { dialSocket, type Request } from './dial.ts';
import * as answers from './docker-answers.ts';
import { createBody } from './docker-create.ts';
import { createExec, pipeExec, startExec } from './docker-exec.ts';
import * as files from './docker-files.ts';
import { networkCalls } from './docker-network.ts';
import { listOwned } from './docker-owned.ts';
import { container, imagePath, segment } from './docker-paths.ts';
import { pullImage } from './docker-pull.ts';
import { engineWords } from './engine-error.ts';
import type { Engine } from './port.ts';

type Options = Pick<Request, 'query' | 'body' | 'upload'>;
type Call = keyof typeof DEADLINES_MS;

/** The engine behind a unix socket. Connects on first use; see the port for what the calls throw. */
export function connectDocker(socketPath: string): Engine {
  const dial = dialSocket(socketPath);

  function ask(call: Call, of: string, method: Request['method'], path: string, options: Options = {}) {
    return dial.json({ subject: { call, of }, deadlineMs: DEADLINES_MS[call], method, path, ...options });
  }

  const inspectRaw = async (id: string) =>
    answers.parseObject('inspect', await ask('inspect', id, 'GET', `${container(id)}/json`));

  return {
    async info() {
      const [info, version] = await Promise.all([
        ask('info', 'engine', 'GET', '/info'),
        ask('info', 'engine', 'GET', '/version'),
      ]);
      return answers.parseInfo(info, version);
    },

    async image(ref) {
      const raw = await orNull(ask('image', ref, 'GET', `/images/${imagePath(ref)}/json`));
      return raw === null ? null : answers.parseImage(raw);
    },

    pull: (ref) => pullImage(dial, ref),

    async create(spec) {
      const raw = await dial.json({
        subject: { call: 'create', of: spec.name, env: spec.env },
        deadlineMs: DEADLINES_MS.create,
        method: 'POST',
        path: '/containers/create',
        query: { name: spec.name },
        body: createBody(spec),
      });
      return answers.parseId('create', raw);
    },

    inspectRaw,

    async inspect(id) {
      return answers.parseContainer(await inspectRaw(id));
    },

    async start(id) {
      await ask('start', id, 'POST', `${container(id)}/start`);
    },

    async kill(id) {
      await ask('kill', id, 'POST', `${container(id)}/kill`, { query: { signal: 'SIGKILL' } });
    },

    async remove(id) {
      try {
        await orNull(ask('remove', id, 'DELETE', container(id), { query: { force: 'true', v: 'true' } }));
      } catch (error) {
        if (!isLeaving(error)) throw error;
      }
    },

    async waitExit(id, timeoutMs) {
      const subject = { call: 'waitExit', of: id };
      const path = `${container(id)}/wait`;
      return answers.parseExit(await dial.json({ subject, deadlineMs: timeoutMs, method: 'POST', path }));
    },

    createExec: (id, spec) => createExec(dial, id, spec),

    startExec: (execId) => startExec(socketPath, execId),

    pipeExec: (execId, onOutput) => pipeExec(socketPath, execId, onOutput),

    async execState(execId) {
      return answers.parseExecState(await ask('execState', execId, 'GET', `/exec/${segment(execId)}/json`));
    },

    putArchive: (id, path, tar) => files.putArchive(dial, id, path, tar),

    getArchive: (id, path) => files.getArchive(dial, id, path),

    async statPath(id, path) {
      const stat = await files.statPath(dial, id, path);
      // The answer cannot say which was missing: the path, or the whole container.
      if (stat === null) await inspectRaw(id);
      return stat;
    },

    async writableLayerBytes(id, timeoutMs) {
      const raw = await dial.json({
        subject: { call: 'writableLayerBytes', of: id },
        deadlineMs: timeoutMs,
        method: 'GET',
        path: `${container(id)}/json`,
        query: { size: 'true' },
      });
      return answers.parseLayerSize(raw);
    },

    async createVolume(name, labels) {
      const body = { Name: name, Labels: labels };
      await ask('createVolume', name, 'POST', '/volumes/create', { body });
    },

    async removeVolume(name) {
      await ask('removeVolume', name, 'DELETE', `/volumes/${segment(name)}`);
    },

    ...networkCalls(dial),

    async removeImage(id) {
      await ask('removeImage', id, 'DELETE', `/images/${imagePath(id)}`, { query: { force: 'true' } });
    },

    listOwned: (label) => listOwned(dial, label),
  };
}

/** Two sweeps may meet at one container: the other's removal is as good as ours. */
function isLeaving(error: unknown): boolean {
  return isEvaluatorError(error, 'engine_conflict') && engineWords(error).includes('already in progress');
}

async function orNull(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer;
  } catch (error) {
    if (isEvaluatorError(error, 'engine_not_found')) return null;
    throw error;
  }
}
