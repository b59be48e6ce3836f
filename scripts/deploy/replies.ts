import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import { type ForeignLimits, parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { printable } from '../../guest/wire/scalars.ts';
import type { Created, Offer, Provisioned, SignedEnvKey, Vm, VmState } from './cloud.ts';
import { parseUsd } from './usd.ts';

/** A CVM list of a large account, with every detail. */
const LIMITS: ForeignLimits = { maxBytes: 8 * 1024 * 1024, maxDepth: 32 };

const prefixed = (bytes: number) =>
  z
    .string()
    .regex(new RegExp(`^(?:0x)?[0-9a-f]{${2 * bytes}}$`, 'i'))
    .transform((text) => text.replace(/^0x/i, '').toLowerCase());
/** What stands in a path: nothing of it may end a segment. */
const pathId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);
const vmUuid = z
  .string()
  .regex(/^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i)
  .transform((text) => text.replaceAll('-', ''));
const name = z.string().max(256);
const usd = z.string().transform((text, context) => {
  const amount = parseUsd(text);
  if (amount !== null && amount > 0n) return amount;
  context.addIssue({ code: 'custom', message: 'must be a price above zero' });
  return z.NEVER;
});

const instanceType = z.looseObject({
  id: z.string(),
  vcpu: z.int().positive(),
  memory_mb: z.int().positive(),
  hourly_rate: usd,
});
const instanceTypes = z.looseObject({ result: z.array(z.looseObject({ items: z.array(instanceType) })) });

const provisioned = z.looseObject({
  app_id: prefixed(20),
  compose_hash: z
    .string()
    .regex(/^(?:sha256:)?[0-9a-f]{64}$/)
    .transform((text) => text.replace('sha256:', '')),
  app_env_encrypt_pubkey: prefixed(32).nullish(),
  kms_id: pathId.nullish(),
  kms_info: z.looseObject({ id: pathId }).nullish(),
  instance_type: z.string().nullish(),
});
const envKey = z.looseObject({ public_key: prefixed(32), signature: prefixed(65) });
const created = z.looseObject({
  vm_uuid: vmUuid.nullish(),
  app_id: prefixed(20).nullish(),
  vcpu: z.int().positive(),
  memory: z.int().positive(),
});
const vm = z.looseObject({ id: pathId, name, app_id: prefixed(20).nullish(), vm_uuid: vmUuid.nullish() });
const vmPage = z.looseObject({
  items: z.array(vm),
  total: z.int().nonnegative(),
  pages: z.int().nonnegative().max(1000),
});
const vmState = z.looseObject({ status: z.string().max(64), boot_error: z.string().nullish() });
const composition = z.looseObject({
  containers: z
    .array(z.looseObject({ image: z.string(), log_endpoint: z.string().max(2048).nullish() }))
    .nullish(),
});
const refusal = z.looseObject({ detail: z.unknown() });

function read<T>(schema: z.ZodType<T>, body: Buffer, what: string): T {
  const malformed = (why: string, cause?: unknown) =>
    new EvaluatorError('cloud_reply_malformed', `${what}: ${printable(why)}`, { cause });
  let json: unknown;
  try {
    json = parseForeignJson(body, LIMITS);
  } catch (cause) {
    throw malformed(cause instanceof Error ? cause.message : 'unreadable', cause);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw malformed(`${issue?.path.map(String).join('.') || '(root)'}: ${issue?.message ?? 'invalid'}`);
}

/** Of `GET /instance-types`. @throws cloud_reply_malformed, also when a size is listed twice. */
export function readOffer(body: Buffer, wanted: string): Offer | null {
  const found = read(instanceTypes, body, 'instance types')
    .result.flatMap((family) => family.items)
    .filter((item) => item.id === wanted);
  const [item, another] = found;
  if (another)
    throw new EvaluatorError('cloud_reply_malformed', `instance types: ${printable(wanted)} is there twice`);
  return item ? { shape: { vcpu: item.vcpu, memory_mb: item.memory_mb }, hourly: item.hourly_rate } : null;
}

/** Of `POST /cvms/provision`. @throws cloud_reply_malformed. */
export function readProvisioned(body: Buffer): Provisioned {
  const reply = read(provisioned, body, 'provision');
  const kmsId = reply.kms_id ?? reply.kms_info?.id;
  if (kmsId === undefined)
    throw new EvaluatorError('cloud_reply_malformed', 'provision: names no KMS, so no key can be checked');
  return {
    appId: reply.app_id,
    composeHash: reply.compose_hash,
    kmsId,
    envPublicKey: reply.app_env_encrypt_pubkey ?? null,
    instanceType: reply.instance_type ?? null,
  };
}

/** Of `GET /kms/{kms}/pubkey/{app}`. @throws cloud_reply_malformed. */
export function readEnvKey(body: Buffer): SignedEnvKey {
  const reply = read(envKey, body, 'key for variables');
  return { publicKey: reply.public_key, signature: reply.signature };
}

/** Of `POST /cvms`. @throws cloud_reply_malformed. */
export function readCreated(body: Buffer): Created {
  const reply = read(created, body, 'create');
  const { vm_uuid: id, app_id: appId, vcpu, memory } = reply;
  return { id: id ?? null, appId: appId ?? null, shape: { vcpu, memory_mb: memory } };
}

/** Of `GET /cvms/paginated`. @throws cloud_reply_malformed. */
export function readVmPage(body: Buffer): { vms: Vm[]; total: number; pages: number } {
  const { items, total, pages } = read(vmPage, body, 'list of VMs');
  const vms = items.map((item) => ({
    id: item.vm_uuid ?? item.id,
    name: item.name,
    appId: item.app_id ?? null,
  }));
  return { vms, total, pages };
}

/** Of `GET /cvms/{id}/state`. @throws cloud_reply_malformed. */
export function readState(body: Buffer): VmState {
  const reply = read(vmState, body, 'state');
  return { status: reply.status, bootError: reply.boot_error || null };
}

/** Of `GET /cvms/{id}/composition`: where the log of the container of this image is. @throws cloud_reply_malformed. */
export function readLogAddress(body: Buffer, imageRef: string): string | null {
  const containers = read(composition, body, 'composition').containers ?? [];
  return containers.find(({ image }) => image === imageRef)?.log_endpoint ?? null;
}

/** The reason in a refusal, as it may be shown; empty when there is none. */
export function readReason(body: Buffer): string {
  try {
    const { detail } = refusal.parse(parseForeignJson(body, LIMITS));
    const text = typeof detail === 'string' ? detail : JSON.stringify(detail);
    return text === undefined ? '' : `: ${printable(text)}`;
  } catch {
    return '';
  }
}
