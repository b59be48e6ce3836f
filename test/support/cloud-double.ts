import { createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { x25519 } from '@noble/curves/ed25519';
import { secp256k1 } from '@noble/curves/secp256k1';
import { keccak_256 } from '@noble/hashes/sha3';
import { onTestFinished } from 'vitest';

export const API_KEY = 'phak_a-key-for-tests-only';
const KMS_ID = 'kms_prod1';

export interface CloudRequest {
  method: string;
  /** Below the API's base, with its query. */
  path: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

interface DoubleVm {
  uuid: string;
  name: string;
  appId: string;
}

export type CloudReply =
  | { status: number; body: unknown }
  | { status: number; raw: string | Buffer; location?: string };
/** Called before the double itself: `go on` leaves the reply to it, `hang` gives none, `cut` breaks off. */
export type Misbehaviour = (
  request: CloudRequest,
  cloud: CloudDouble,
) => CloudReply | 'go on' | 'hang' | 'cut';

/** The documented API of Phala Cloud on loopback, as far as a deployment uses it. */
export interface CloudDouble {
  /** Without a trailing slash. */
  apiUrl: string;
  kmsSigner: string;
  received: CloudRequest[];
  /** VMs that are still paid for. */
  vms: Map<string, DoubleVm>;
  /** Of the guest's container; null: none runs yet. */
  log: { text: Buffer | null };
  state: { status: string; boot_error: string | null };
  hourlyRate: string;
  /** The variables of the last creation, as only the VM can read them. */
  decrypted(): Record<string, string>;
  /** As `POST /cvms` does, without a reply. */
  make(body: Buffer): DoubleVm;
  misbehave: Misbehaviour;
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  );
}

/** A KMS: an X25519 key for an app, and its secp256k1 signature over it. */
class Kms {
  readonly #root = secp256k1.utils.randomPrivateKey();
  readonly #env = x25519.utils.randomPrivateKey();
  readonly publicKey = hex(x25519.getPublicKey(this.#env));
  readonly signer = hex(secp256k1.getPublicKey(this.#root, true));

  sign(appId: string): string {
    const message = Buffer.concat([
      Buffer.from('dstack-env-encrypt-pubkey:'),
      Buffer.from(appId, 'hex'),
      Buffer.from(this.publicKey, 'hex'),
    ]);
    const signature = secp256k1.sign(keccak_256(message), this.#root);
    return signature.toCompactHex() + Buffer.from([signature.recovery]).toString('hex');
  }

  open(encryptedHex: string): Record<string, string> {
    const bytes = Buffer.from(encryptedHex, 'hex');
    const shared = x25519.getSharedSecret(this.#env, bytes.subarray(0, 32));
    const decipher = createDecipheriv('aes-256-gcm', shared, bytes.subarray(32, 44));
    decipher.setAuthTag(bytes.subarray(-16));
    const text = Buffer.concat([decipher.update(bytes.subarray(44, -16)), decipher.final()]).toString();
    const { env } = JSON.parse(text) as { env: { key: string; value: string }[] };
    return Object.fromEntries(env.map(({ key, value }) => [key, value]));
  }
}

/** Starts the double; gone when the test is. */
export async function startCloudDouble(misbehave: Misbehaviour = () => 'go on'): Promise<CloudDouble> {
  const kms = new Kms();
  const provisions = new Map<string, { appId: string; name: string; imageRef: string }>();
  let encryptedEnv = '';
  let imageRef = '';
  const json = (body: unknown, status = 200): CloudReply => ({ status, body });

  const make = (body: Buffer): DoubleVm => {
    const asked = JSON.parse(body.toString()) as { app_id: string; encrypted_env: string };
    const provisioned = provisions.get(asked.app_id);
    if (!provisioned) throw new Error('create: not provisioned');
    encryptedEnv = asked.encrypted_env;
    imageRef = provisioned.imageRef;
    const uuid = `${hex(randomBytes(4))}-${hex(randomBytes(2))}-4abc-8abc-${hex(randomBytes(6))}`;
    const vm = { uuid, name: provisioned.name, appId: asked.app_id };
    cloud.vms.set(uuid.replaceAll('-', ''), vm);
    return vm;
  };

  const listed = (vm: DoubleVm) => ({
    id: `cvm_${vm.uuid.slice(0, 8)}`,
    name: vm.name,
    app_id: vm.appId,
    vm_uuid: vm.uuid,
    status: cloud.state.status,
    resource: { instance_type: 'tdx.small' },
    gateway: {},
  });

  const routes: readonly [RegExp, (request: CloudRequest, match: RegExpExecArray) => CloudReply][] = [
    [
      /^GET \/instance-types$/,
      () =>
        json({
          result: [
            {
              name: 'cpu',
              total: 2,
              items: [
                type('tdx.small', 1, 2048, cloud.hourlyRate),
                type('tdx.xlarge', 8, 16_384, cloud.hourlyRate),
              ],
            },
          ],
        }),
    ],
    [
      /^POST \/cvms\/provision$/,
      ({ body }) => {
        const asked = JSON.parse(body.toString()) as {
          name: string;
          instance_type: string;
          compose_file: { docker_compose_file: string };
        };
        const appId = hex(randomBytes(20));
        const image = /image: (\S+)/.exec(asked.compose_file.docker_compose_file)?.[1] ?? '';
        provisions.set(appId, { appId, name: asked.name, imageRef: image });
        const bytes = JSON.stringify(sorted(asked.compose_file));
        return json({
          app_id: appId,
          app_env_encrypt_pubkey: kms.publicKey,
          compose_hash: createHash('sha256').update(bytes).digest('hex'),
          kms_id: KMS_ID,
          instance_type: asked.instance_type,
          os_image_hash: null,
          node_id: 1,
        });
      },
    ],
    [
      new RegExp(`^GET /kms/${KMS_ID}/pubkey/([0-9a-f]{40})$`),
      (_, [, appId = '']) => json({ public_key: kms.publicKey, signature: kms.sign(appId) }),
    ],
    [
      /^POST \/cvms$/,
      ({ body }) => {
        const vm = make(body);
        return json({
          id: 789,
          name: vm.name,
          status: 'creating',
          app_id: vm.appId,
          vm_uuid: vm.uuid,
          vcpu: 1,
          memory: 2048,
          disk_size: 20,
        });
      },
    ],
    [
      /^GET \/cvms\/paginated\?page=(\d+)&page_size=100$/,
      () =>
        json({
          items: [...cloud.vms.values()].map(listed),
          total: cloud.vms.size,
          page: 1,
          page_size: 100,
          pages: 1,
        }),
    ],
    [
      /^GET \/cvms\/([0-9a-f]{32})\/state$/,
      (_, [, id = '']) => {
        const vm = cloud.vms.get(id);
        return vm ? json({ name: vm.name, ...cloud.state }) : json({ detail: 'not found' }, 404);
      },
    ],
    [
      /^GET \/cvms\/([0-9a-f]{32})\/composition$/,
      () =>
        json({
          is_online: true,
          error: null,
          containers:
            cloud.log.text === null
              ? null
              : [
                  { image: 'sha256:another', log_endpoint: `${cloud.apiUrl}/logs/another` },
                  { image: imageRef, log_endpoint: `${cloud.apiUrl}/logs/evaluator` },
                ],
        }),
    ],
    [/^GET \/logs\/evaluator\?text=&bare=&tail=\d+$/, () => ({ status: 200, raw: cloud.log.text ?? '' })],
    [
      /^DELETE \/cvms\/([0-9a-f]{32})$/,
      (_, [, id = '']) =>
        cloud.vms.delete(id) ? { status: 204, raw: '' } : json({ detail: 'not found' }, 404),
    ],
  ];

  const answer = (request: CloudRequest): CloudReply => {
    const line = `${request.method} ${request.path}`;
    const isLog = request.path.startsWith('/logs/');
    if (!isLog && request.headers['x-api-key'] !== API_KEY)
      return json({ detail: 'Could not validate credentials' }, 401);
    for (const [pattern, handle] of routes) {
      const match = pattern.exec(line);
      if (match) return handle(request, match);
    }
    return json({ detail: `no such route: ${line}` }, 404);
  };

  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const request: CloudRequest = {
      method: incoming.method ?? '',
      path: (incoming.url ?? '').replace('/api/v1', ''),
      headers: incoming.headers,
      body: await buffer(incoming),
    };
    cloud.received.push(request);
    const own = cloud.misbehave(request, cloud);
    if (own === 'hang') return;
    if (own === 'cut') {
      incoming.socket.destroy();
      return;
    }
    const reply = own === 'go on' ? answer(request) : own;
    const bytes = 'raw' in reply ? reply.raw : JSON.stringify(reply.body);
    response.writeHead(reply.status, {
      'content-type': 'raw' in reply ? 'text/plain' : 'application/json',
      ...('raw' in reply && reply.location !== undefined ? { location: reply.location } : {}),
    });
    response.end(reply.status === 204 ? undefined : bytes);
  };

  const server = createServer((incoming, response) => void handle(incoming, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const cloud: CloudDouble = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    kmsSigner: kms.signer,
    received: [],
    vms: new Map(),
    log: { text: null },
    state: { status: 'running', boot_error: null },
    hourlyRate: '0.058',
    decrypted: () => kms.open(encryptedEnv),
    make,
    misbehave,
  };
  return cloud;
}

const type = (id: string, vcpu: number, memoryMb: number, rate: string) => ({
  id,
  name: id,
  description: '',
  vcpu,
  memory_mb: memoryMb,
  hourly_rate: rate,
  requires_gpu: false,
  default_disk_size_gb: 20,
  family: 'cpu',
});
