import { VM_SHAPES } from '../../compose/known-measurements.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { printable } from '../../guest/wire/scalars.ts';
import type { Cloud, Created, Provisioned } from './cloud.ts';
import { encryptVariables, verifyEnvKey } from './env-key.ts';
import type { Order } from './order.ts';
import { type NanoUsd, verifyWithinCap } from './usd.ts';

function other(problem: string): EvaluatorError {
  return new EvaluatorError('deploy_offer_mismatch', `cloud: ${problem}`);
}

/**
 * What a size costs per hour, by the cloud's list.
 * @throws deploy_price_unknown, deploy_offer_mismatch when it is another shape than its name says.
 */
export async function priceOf(cloud: Cloud, instanceType: string): Promise<NanoUsd> {
  const offer = await cloud.offer(instanceType);
  if (!offer)
    throw new EvaluatorError(
      'deploy_price_unknown',
      `${instanceType}: the cloud lists no price for it; nothing was created`,
    );
  const { vcpu, memory_mb } = offer.shape;
  const shape = VM_SHAPES[instanceType];
  if (shape?.vcpu !== vcpu || shape.memory_mb !== memory_mb)
    throw other(`${instanceType} is ${vcpu} vCPU with ${memory_mb} MiB there: its RTMR0 is on no list`);
  return offer.hourly;
}

/** The price, known and within the order's cap. @throws as priceOf, deploy_price_above_cap. */
export async function affordable(cloud: Cloud, order: Order): Promise<NanoUsd> {
  const hourly = await priceOf(cloud, order.instanceType);
  verifyWithinCap(hourly, order.maxHourly, order.instanceType);
  return hourly;
}

/**
 * Has the cloud say what it would deploy, which must be what was rendered here.
 * @throws deploy_compose_changed, deploy_offer_mismatch.
 */
export async function provision(cloud: Cloud, order: Order): Promise<Provisioned> {
  const { name, instanceType, osImage, diskGb, appCompose, composeHash, envNames } = order;
  const offered = await cloud.provision({ name, instanceType, osImage, diskGb, appCompose, envNames });
  if (offered.composeHash !== composeHash)
    throw new EvaluatorError(
      'deploy_compose_changed',
      `compose hash: ${composeHash} here, ${offered.composeHash} at the cloud, which changed what it was sent; nothing was created`,
    );
  if (offered.instanceType !== null && offered.instanceType !== instanceType)
    throw other(`offers ${printable(offered.instanceType)} in place of ${instanceType}`);
  return offered;
}

/** The variables, encrypted for this app's key, which the named KMS has signed. @throws deploy_env_key_invalid. */
export async function sealVariables(cloud: Cloud, order: Order, offered: Provisioned): Promise<string> {
  const { appId, kmsId, envPublicKey } = offered;
  const key = await cloud.envKey(kmsId, appId);
  verifyEnvKey(key, { appId, kmsSigner: order.kmsSigner, provisioned: envPublicKey });
  return encryptVariables(order.values, key.publicKey);
}

/** The VM is the one that was ordered. @throws deploy_offer_mismatch. */
export function verifyCreated(created: Created, order: Order, offered: Provisioned): void {
  const { vcpu, memory_mb } = created.shape;
  const shape = VM_SHAPES[order.instanceType];
  if (shape?.vcpu !== vcpu || shape.memory_mb !== memory_mb)
    throw other(`created ${vcpu} vCPU with ${memory_mb} MiB in place of ${order.instanceType}`);
  if (created.appId !== null && created.appId !== offered.appId)
    throw other(`created app ${created.appId} in place of ${offered.appId}`);
}
