import type { Readable } from 'node:stream';
import { z } from 'zod';
import { DEADLINES_MS } from '../../guest/engine/deadline.ts';
import { dialSocket, type Request } from '../../guest/engine/dial.ts';
import { connectDocker } from '../../guest/engine/docker.ts';
import { container, segment } from '../../guest/engine/docker-paths.ts';
import type { Engine } from '../../guest/engine/port.ts';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import type { StopSignal } from './process.ts';

/** On what a desk makes for its guest: the desk's id. No guest looks at it. */
export const DESK_LABEL = 'io.cvm-evaluator.desk';
/** The process that takes a desk down, as an owner of `guest/trial/labels.ts`. */
export const DESK_OWNER_LABEL = 'io.cvm-evaluator.desk-owner';

/** The name of an image that a desk has made for itself alone. */
export const deskImage = (deskId: string): string => `cvm-evaluator/desk:${deskId}`;

const networkAnswer = z.object({
  IPAM: z.object({ Config: z.array(z.object({ Gateway: z.string().optional() })) }),
});
const createAnswer = z.object({ Id: z.string().min(1) });
const repoDigests = z.object({ RepoDigests: z.array(z.string()).nullish() });

/** What a desk asks of an engine beside the guest's own port. */
export interface DeskEngine extends Engine {
  /** A bridge, and the address that this machine has on it. */
  openBridge(name: string, labels: Readonly<Record<string, string>>): Promise<{ gateway: string }>;
  /** A container from a create document. */
  createFrom(name: string, body: object): Promise<string>;
  /** Everything that a container writes until it ends, as the engine frames it. */
  follow(id: string): Promise<Readable>;
  /** Asks a container's main process to end; one that has ended is fine. */
  terminate(id: string, signal: StopSignal): Promise<void>;
  /** `repo@sha256:…` names under which registries know an image. */
  repoDigests(ref: string): Promise<readonly string[]>;
}

function parse<T>(call: string, schema: z.ZodType<T>, raw: unknown): T {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  throw new EvaluatorError('engine_error', `${call}: the engine's answer has another shape`);
}

/** Connects on first use; every call throws `engine_*`. */
export function connectDeskEngine(socketPath: string): DeskEngine {
  const dial = dialSocket(socketPath);
  const engine = connectDocker(socketPath);
  const ask = (
    call: keyof typeof DEADLINES_MS,
    of: string,
    request: Pick<Request, 'method' | 'path' | 'query' | 'body'>,
  ) => dial.json({ subject: { call, of }, deadlineMs: DEADLINES_MS[call], ...request });

  return {
    ...engine,

    async openBridge(name, labels) {
      const id = await engine.createNetwork(name, labels);
      const answer = await ask('createNetwork', name, { method: 'GET', path: `/networks/${segment(id)}` });
      const gateways = parse('openBridge', networkAnswer, answer).IPAM.Config.map(({ Gateway }) => Gateway);
      const gateway = gateways.find((address) => address?.includes('.'));
      if (gateway !== undefined) return { gateway };
      throw new EvaluatorError('engine_error', `openBridge ${name}: this machine has no address on it`);
    },

    async createFrom(name, body) {
      const path = '/containers/create';
      return parse(
        'create',
        createAnswer,
        await ask('create', name, { method: 'POST', path, query: { name }, body }),
      ).Id;
    },

    follow: (id) =>
      dial.stream({
        subject: { call: 'logs', of: id },
        deadlineMs: DEADLINES_MS.start,
        method: 'GET',
        path: `${container(id)}/logs`,
        query: { follow: '1', stdout: '1', stderr: '1' },
      }),

    async terminate(id, signal) {
      const query = { signal };
      await ask('kill', id, { method: 'POST', path: `${container(id)}/kill`, query }).catch((error) => {
        if (!isEvaluatorError(error, 'engine_conflict') && !isEvaluatorError(error, 'engine_not_found'))
          throw error;
      });
    },

    async repoDigests(ref) {
      const path = `/images/${ref.split('/').map(segment).join('/')}/json`;
      return parse('image', repoDigests, await ask('image', ref, { method: 'GET', path })).RepoDigests ?? [];
    },
  };
}
