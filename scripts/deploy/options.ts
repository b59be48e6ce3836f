import { randomBytes } from 'node:crypto';
import { VM_SHAPES, verifyOsVersion } from '../../compose/known-measurements.ts';
import type { Composed } from '../../compose/parse.ts';
import { REVIEW_ENV_NAMES } from '../../compose/review-compose.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { printable } from '../../guest/wire/scalars.ts';
import { parseOptions, required } from '../cli/arguments.ts';
import { COMPOSE_HELP, COMPOSE_OPTIONS, readComposed } from '../cli/compose-options.ts';
import { readInput } from '../cli/read-input.ts';
import { type NanoUsd, parseUsd } from './usd.ts';

export const USAGE = `evaluator deploy --image REF --plan-root HEX --challenge-id ID --key-provider-id HEX
                        --kms-signer HEX --max-cost USD [--role eval|review] [--agent-env NAME,…]
                        [--env-file FILE] [--vm-shape NAME] [--os-image NAME] [--disk GB]
                        [--timeout MINUTES] [--out DIR] [--api URL] [--dry-run] [--json]`;

export const HELP = `usage: ${USAGE}

Deploys a guest image to Phala Cloud, waits for the challenge's judgement and deletes the VM, whatever happened.
The API key is taken from PHALA_CLOUD_API_KEY. --dry-run sends no variable and creates nothing.

${COMPOSE_HELP}
  --kms-signer HEX       the KMS's secp256k1 key, compressed: it must have signed the key for variables
  --max-cost USD         the most that an hour of the VM may cost; above it nothing is created
  --env-file FILE        NAME=value lines; without it, values come from this environment
  --vm-shape NAME        ${Object.keys(VM_SHAPES).join(', ')} (default: tdx.xlarge, of a review tdx.small)
  --os-image NAME        the OS image (default: dstack-0.5.9)
  --disk GB              (default: 100, of a review 20)
  --timeout MINUTES      delete the VM when there is no judgement by then (default: 120)
  --out DIR              where app-compose, RESULT and what was deployed go (default: out/<time>)
  --api URL              (default: PHALA_CLOUD_API_PREFIX, or https://cloud-api.phala.com/api/v1)
  --dry-run              render, hash and check; with an API key, ask for the price
  --json                 one JSON object on stdout

exit codes: 0 accepted, 1 rejected, 2 refused input, 3 what came back cannot be believed,
            5 no judgement, or THE VM WAS NOT DELETED (deploy_not_deleted), 130/143 ended by a signal
`;

const OPTIONS = {
  ...COMPOSE_OPTIONS,
  'kms-signer': { type: 'string' },
  'max-cost': { type: 'string' },
  'env-file': { type: 'string' },
  'vm-shape': { type: 'string' },
  'os-image': { type: 'string', default: 'dstack-0.5.9' },
  disk: { type: 'string' },
  timeout: { type: 'string', default: '120' },
  out: { type: 'string' },
  api: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** What is asked for; null is not said, which only a dry run may leave so. */
export interface DeployOptions {
  mode: 'dry-run' | 'real';
  composed: Composed;
  envNames: readonly string[];
  /** Those of `envNames` that may be left out. */
  optionalEnv: ReadonlySet<string>;
  /** Bytes of the file; null: the environment. */
  envFile: Buffer | null;
  name: string;
  instanceType: string;
  osImage: string;
  diskGb: number;
  timeoutMs: number;
  kmsSigner: string | null;
  maxHourly: NanoUsd | null;
  /** A secret. */
  apiKey: string | null;
  apiUrl: string;
  out: string | null;
  format: 'json' | 'lines';
}

function refuse(message: string): never {
  throw new EvaluatorError('usage', `deploy: ${message}`);
}

function count(text: string, option: string, max: number): number {
  const value = /^[0-9]{1,6}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > max) refuse(`--${option} ${printable(text)}: a whole number from 1 to ${max}`);
  return value;
}

/** A base URL; in clear text only to this machine, as the API key goes there. */
function readApiUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : refuse(`--api ${printable(text)}: no URL`);
  const isLocal = ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal))
    refuse(`--api ${printable(text)}: must be https`);
  return text;
}

function readSigner(text: string): string {
  const key = text.replace(/^0x/i, '').toLowerCase();
  return /^0[23][0-9a-f]{64}$/.test(key)
    ? key
    : refuse('--kms-signer: a compressed secp256k1 key, 02 or 03 and 64 hex digits');
}

function readShape(name: string): string {
  return Object.hasOwn(VM_SHAPES, name)
    ? name
    : refuse(`--vm-shape ${printable(name)}: known are ${Object.keys(VM_SHAPES).join(', ')}`);
}

function readCap(text: string): NanoUsd {
  return parseUsd(text) ?? refuse(`--max-cost ${printable(text)}: dollars per hour, as 0.50`);
}

/** A value on the command line is seen by every user of the machine, so it is not repeated either. */
function refuseValues(names: readonly string[] | undefined): void {
  if (names?.some((name) => name.includes('=')))
    refuse('--agent-env takes names alone; values come from --env-file or the environment');
}

/** Null when help was asked for. @throws usage, schema_invalid, env_name_refused, os_not_allowed. */
export function readDeployOptions(argv: readonly string[], env: NodeJS.ProcessEnv): DeployOptions | null {
  const values = parseOptions(argv, OPTIONS, USAGE);
  if (values.help) return null;
  refuseValues(values['agent-env']);
  const composed = readComposed(values, USAGE);
  const { role } = composed;
  const mode = values['dry-run'] ? 'dry-run' : 'real';
  // What a real deployment must say; a dry run may leave it out.
  const needed = <T>(value: T | undefined, option: string): T | null =>
    mode === 'real' ? required(value, option, USAGE) : (value ?? null);
  needed(values['key-provider-id'], 'key-provider-id');
  const signer = needed(values['kms-signer'], 'kms-signer');
  const cap = needed(values['max-cost'], 'max-cost');
  const apiKey = env.PHALA_CLOUD_API_KEY || null;
  if (mode === 'real' && apiKey === null) refuse('set PHALA_CLOUD_API_KEY');
  verifyOsVersion(values['os-image']);
  return {
    mode,
    composed,
    envNames: composed.role === 'eval' ? [...composed.envNames].sort() : REVIEW_ENV_NAMES,
    optionalEnv: new Set(role === 'eval' ? [] : ['REVIEW_SERVER_CA']),
    envFile: values['env-file'] === undefined ? null : readInput(values['env-file'], 'env-file'),
    name: `cvm-evaluator-${role}-${randomBytes(8).toString('hex')}`,
    instanceType: readShape(values['vm-shape'] ?? (role === 'eval' ? 'tdx.xlarge' : 'tdx.small')),
    osImage: values['os-image'],
    diskGb: count(values.disk ?? (role === 'eval' ? '100' : '20'), 'disk', 10_000),
    timeoutMs: count(values.timeout, 'timeout', 10_000) * 60_000,
    kmsSigner: signer === null ? null : readSigner(signer),
    maxHourly: cap === null ? null : readCap(cap),
    apiKey,
    apiUrl: readApiUrl(values.api ?? (env.PHALA_CLOUD_API_PREFIX || 'https://cloud-api.phala.com/api/v1')),
    out: values.out ?? null,
    format: values.json ? 'json' : 'lines',
  };
}
