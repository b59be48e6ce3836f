import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { agentEventLog, agentHex } from './agent-view.ts';
import { deriveAppKey } from './app-key.ts';
import { type AgentMethod, type Fault, findFault, hasFault } from './faults.ts';
import type { Platform } from './platform.ts';
import type { CertForm, RaTlsEvidence } from './ra-tls.ts';
import { createKmsChain, issueTlsKey } from './tls-key.ts';

export interface AgentOptions {
  platform: Platform;
  faults: readonly Fault[];
  certForm: CertForm;
  /** Milliseconds since the epoch. */
  clock: () => number;
}

/** One guest agent call: takes the parsed JSON body, gives the reply's object, throws what HTTP 400 shall say. */
export type AgentCall = (body: unknown) => Promise<object>;

const BYTES_PER_MB = 1024 * 1024;

const unixSeconds = z.int().min(0).max(253_402_300_799);
const tlsKeyArguments = z.object({
  subject: z.string().default(''),
  alt_names: z.array(z.string()).default([]),
  usage_ra_tls: z.boolean().default(false),
  usage_server_auth: z.boolean().default(false),
  usage_client_auth: z.boolean().default(false),
  not_before: unixSeconds.optional(),
  not_after: unixSeconds.optional(),
});
const keyArguments = z.object({
  path: z.string().default(''),
  purpose: z.string().default(''),
  algorithm: z.string().default(''),
});
const quoteArguments = z.object({
  report_data: z
    .string()
    .regex(/^(?:[0-9a-fA-F]{2})*$/)
    .default(''),
});

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`Failed to parse ${issue?.path.join('.') || 'request'}: ${issue?.message}`);
}

function keyAlgorithm(name: string): 'secp256k1' | 'ed25519' {
  if (name === '' || name === 'k256' || name === 'secp256k1') return 'secp256k1';
  if (name === 'ed25519') return name;
  throw new Error('Unsupported algorithm');
}

function vmConfigText(platform: Platform): string {
  return JSON.stringify({
    spec_version: 1,
    os_image_hash: platform.osCatalogueHash.toString('hex'),
    cpu_count: platform.vmShape.vcpu,
    memory_size: platform.vmShape.memory_mb * BYTES_PER_MB,
  });
}

function appName(appCompose: Buffer): string {
  try {
    const { name } = JSON.parse(appCompose.toString()) as { name?: unknown };
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}

function infoReply(platform: Platform, faults: readonly Fault[], appCert: string): object {
  const hex = agentHex(faults);
  const { registers } = platform;
  const aggregated = createHash('sha256').update(Object.values(registers).join(''), 'hex').digest();
  const common = {
    mr_aggregated: hex(aggregated),
    os_image_hash: hex(platform.osCatalogueHash),
    compose_hash: hex(platform.measurement.compose_hash),
    device_id: hex(platform.deviceId),
  };
  const tcbInfo = {
    ...Object.fromEntries(Object.entries(registers).map(([name, value]) => [name, hex(value)])),
    ...common,
    event_log: agentEventLog(platform.eventLog, faults),
    app_compose: platform.appCompose.toString(),
  };
  return {
    app_id: hex(platform.appId),
    instance_id: hex(platform.instanceId),
    app_cert: appCert,
    tcb_info: JSON.stringify(tcbInfo, null, 2),
    app_name: appName(platform.appCompose),
    ...common,
    key_provider_info: platform.keyProviderInfo,
    vm_config: vmConfigText(platform),
    cloud_vendor: 'CVM Evaluator',
    cloud_product: 'Simulator',
  };
}

/** The calls of a guest agent on this platform (spec/04). */
export async function createAgentCalls(options: AgentOptions): Promise<Record<AgentMethod, AgentCall>> {
  const { platform, faults, certForm, clock } = options;
  const hex = agentHex(faults);
  const chain = await createKmsChain(platform);
  const vmConfig = vmConfigText(platform);
  const version = hasFault(faults, 'quote-v5') ? 5 : 4;
  const slowMs = findFault(faults, 'slow-quote')?.ms ?? 0;
  const evidence = (reportData: Buffer): RaTlsEvidence => ({
    quote: platform.quote(reportData, { version }),
    eventLog: agentEventLog(
      platform.eventLog,
      // Certificates carry bytes, so a prefix of their hex has no place there.
      faults.filter(({ name }) => name !== 'hex-prefix'),
    ),
    reportData,
    vmConfig,
  });
  const tlsKey = (body: unknown) => {
    const args = read(tlsKeyArguments, body);
    if ((args.not_before ?? 0) >= (args.not_after ?? Number.POSITIVE_INFINITY)) {
      throw new Error('not_before must be earlier than not_after');
    }
    return issueTlsKey(args, { chain, appId: platform.appId, certForm, nowMs: clock(), evidence });
  };
  const demo = await tlsKey({ subject: 'demo-cert', usage_ra_tls: true, usage_client_auth: true });
  const info = infoReply(platform, faults, demo.certificate_chain.join('\n'));

  return {
    Info: async () => info,
    Version: async () => ({ version: certForm === 'versioned' ? '0.5.9' : '0.5.8', rev: 'simulator' }),
    GetTlsKey: async (body) => tlsKey(body),
    GetKey: async (body) => {
      const { path, purpose, algorithm } = read(keyArguments, body);
      const derived = deriveAppKey(platform, { path, purpose, algorithm: keyAlgorithm(algorithm) });
      return { key: hex(derived.key), signature_chain: derived.signatureChain.map(hex) };
    },
    GetQuote: async (body) => {
      const given = Buffer.from(read(quoteArguments, body).report_data, 'hex');
      if (given.length > 64) throw new Error('Report data is too long');
      const reportData = Buffer.concat([given, Buffer.alloc(64 - given.length)]);
      if (slowMs > 0) await sleep(slowMs, undefined, { ref: false });
      return {
        quote: hex(platform.quote(reportData, { version })),
        event_log: JSON.stringify(agentEventLog(platform.eventLog, faults)),
        report_data: hex(reportData),
        vm_config: vmConfig,
      };
    },
  };
}
