import { createBaseClient } from '@phala/cloud';
import { EvaluatorError } from '../../guest/errors.ts';
import { printable } from '../../guest/wire/scalars.ts';
import { bytesUpTo } from './bounded.ts';
import type { Cloud, Vm } from './cloud.ts';
import { MAX_LOG_BYTES, readLog } from './log-address.ts';
import * as replies from './replies.ts';

const MAX_REPLY_BYTES = 8 * 1024 * 1024;
const PAGE_SIZE = 100;

export interface CloudAccess {
  /** A bearer, never logged. */
  apiKey: string;
  apiUrl: string;
  /** One exchange, headers and body, in ms. */
  callTimeoutMs: number;
}

interface Call {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: Record<string, unknown>;
}

interface Answer {
  status: number;
  body: Buffer;
}

function refusalOf({ method, path }: Call, { status, body }: Answer): EvaluatorError {
  const said = `cloud: ${method} ${path}: status ${status}${replies.readReason(body)}`;
  if (status === 401 || status === 403)
    return new EvaluatorError('cloud_unauthorized', `${said}; check PHALA_CLOUD_API_KEY`);
  if (status === 429) return new EvaluatorError('cloud_rate_limited', `${said}; wait and try again`);
  if (status >= 500 || status === 408) return new EvaluatorError('cloud_unavailable', said);
  return new EvaluatorError('cloud_refused', said);
}

/**
 * Phala Cloud. Its client's own calls are not used: provision drops `tproxy_enabled`, which changes the
 * compose hash, it follows redirects with the key, retries, and reads replies of any size.
 */
export function connectPhala({ apiKey, apiUrl, callTimeoutMs }: CloudAccess): Cloud {
  const client = createBaseClient({ apiKey, baseURL: apiUrl, version: '2026-01-21' });

  const exchange = async (call: Call): Promise<Answer> => {
    try {
      const { status, data } = await client.requestFull<ReadableStream<Uint8Array> | undefined>(call.path, {
        method: call.method,
        ...(call.body ? { body: call.body } : {}),
        responseType: 'stream',
        redirect: 'error',
        retry: false,
        signal: AbortSignal.timeout(callTimeoutMs),
      });
      return { status, body: await bytesUpTo(data ?? null, MAX_REPLY_BYTES) };
    } catch (cause) {
      if (cause instanceof EvaluatorError) throw cause;
      const why = printable(cause instanceof Error ? cause.message : String(cause));
      throw new EvaluatorError('cloud_unreachable', `cloud: ${call.method} ${call.path}: ${why}`, { cause });
    }
  };
  const ask = async (call: Call): Promise<Buffer> => {
    const answer = await exchange(call);
    if (answer.status < 200 || answer.status > 299) throw refusalOf(call, answer);
    return answer.body;
  };
  const get = (path: string) => ask({ method: 'GET', path });

  return {
    offer: async (instanceType) => replies.readOffer(await get('/instance-types'), instanceType),
    provision: async (request) =>
      replies.readProvisioned(
        await ask({
          method: 'POST',
          path: '/cvms/provision',
          body: {
            name: request.name,
            instance_type: request.instanceType,
            image: request.osImage,
            disk_size: request.diskGb,
            listed: false,
            env_keys: request.envNames,
            compose_file: JSON.parse(request.appCompose.toString('utf8')) as unknown,
          },
        }),
      ),
    envKey: async (kmsId, appId) => replies.readEnvKey(await get(`/kms/${kmsId}/pubkey/${appId}`)),
    create: async ({ appId, composeHash, kmsId, encryptedEnv, envNames }) =>
      replies.readCreated(
        await ask({
          method: 'POST',
          path: '/cvms',
          body: {
            app_id: appId,
            compose_hash: composeHash,
            kms_id: kmsId,
            encrypted_env: encryptedEnv,
            env_keys: envNames,
          },
        }),
      ),
    list: async () => {
      const found = new Map<string, Vm>();
      for (let page = 1, pages = 1; page <= pages; page++) {
        const reply = replies.readVmPage(await get(`/cvms/paginated?page=${page}&page_size=${PAGE_SIZE}`));
        for (const vm of reply.vms) found.set(vm.id, vm);
        pages = reply.pages;
        // What one page says of the whole decides whether anything is still paid for.
        if (page >= pages && found.size < reply.total)
          throw new EvaluatorError(
            'cloud_reply_malformed',
            `list of VMs: ${reply.total} are said to be there, ${found.size} were listed`,
          );
      }
      return [...found.values()];
    },
    state: async (id) => replies.readState(await get(`/cvms/${id}/state`)),
    log: async (id, imageRef) => {
      const address = replies.readLogAddress(await get(`/cvms/${id}/composition`), imageRef);
      if (address === null) return null;
      return readLog(address, { apiUrl, timeoutMs: callTimeoutMs, maxBytes: MAX_LOG_BYTES });
    },
    remove: async (id) => {
      const call: Call = { method: 'DELETE', path: `/cvms/${id}` };
      const answer = await exchange(call);
      if (answer.status !== 404 && (answer.status < 200 || answer.status > 299))
        throw refusalOf(call, answer);
    },
  };
}
