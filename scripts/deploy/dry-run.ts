import type { Cloud } from './cloud.ts';
import type { DeployOptions } from './options.ts';
import { priceOf } from './prepare.ts';
import { costOf, formatUsd, verifyWithinCap } from './usd.ts';
import type { Variables } from './variables.ts';

/** What a deployment would send and cost, without a secret. */
export interface Intent {
  mode: 'dry-run';
  role: string;
  image_ref: string;
  compose_hash: string;
  key_provider_id: string | null;
  vm: { name: string; shape: string; os_image: string; disk_gb: number };
  variables: { names: readonly string[]; missing: readonly string[] };
  /** Null without an API key: the price is the cloud's to say. */
  price: { hourly: string; until_timeout: string } | null;
  api: string;
}

/**
 * Everything of a deployment that costs nothing.
 * @param cloud null: no API key was given.
 * @throws deploy_price_unknown, deploy_price_above_cap, deploy_offer_mismatch, cloud_*.
 */
export async function describe(
  options: DeployOptions,
  composeHash: string,
  { missing }: Variables,
  cloud: Cloud | null,
): Promise<Intent> {
  const { composed, instanceType, timeoutMs, maxHourly } = options;
  const hourly = cloud && (await priceOf(cloud, instanceType));
  if (hourly !== null && maxHourly !== null) verifyWithinCap(hourly, maxHourly, instanceType);
  return {
    mode: 'dry-run',
    role: composed.role,
    image_ref: composed.imageRef,
    compose_hash: composeHash,
    key_provider_id: composed.keyProviderId,
    vm: { name: options.name, shape: instanceType, os_image: options.osImage, disk_gb: options.diskGb },
    variables: { names: options.envNames, missing },
    price:
      hourly === null
        ? null
        : { hourly: formatUsd(hourly), until_timeout: formatUsd(costOf(hourly, timeoutMs)) },
    api: options.apiUrl,
  };
}

/** The same for a person. */
export function intentText({ compose_hash, vm, variables, price, api }: Intent): string {
  const cost = price
    ? `${price.hourly} per hour, at most ${price.until_timeout} until --timeout; the disk may be billed apart`
    : 'unknown without PHALA_CLOUD_API_KEY';
  return [
    `compose hash ${compose_hash}`,
    `price        ${cost}`,
    'would        ask the challenge whether it waits for this run',
    `             POST ${api}/cvms/provision: ${vm.name}, ${vm.shape}, ${vm.os_image}, ${vm.disk_gb} GB`,
    '             end unless the compose hash there is this one',
    '             GET the key for variables, end unless --kms-signer has signed it',
    `             POST ${api}/cvms with ${variables.names.join(', ')}, encrypted for that key`,
    '             follow the public log, ask the challenge for its judgement',
    `             DELETE ${vm.name}, and look whether it is gone`,
    ...(variables.missing.length > 0 ? [`missing      ${variables.missing.join(', ')}`] : []),
    'nothing was sent, nothing was created',
    '',
  ].join('\n');
}
