import pLimit from 'p-limit';
import {
  type ChosenWheel,
  chooseWheel,
  MAX_PAGE_BYTES,
  pageUrl,
  SIMPLE_JSON,
} from '../agent/dependencies/index-page.ts';
import { atLine, REQUIREMENTS_NAME } from '../agent/dependencies/refuse.ts';
import { parseRequirements, type Requirement, verifyListed } from '../agent/dependencies/requirements.ts';
import { verifyWheels, type Wheel } from '../agent/dependencies/wheel.ts';
import type { WheelTarget } from '../agent/dependencies/wheel-name.ts';
import type { AgentPackage } from '../agent/types.ts';
import { type Code, EvaluatorError } from '../errors.ts';
import { type Downloaded, download } from '../net/download.ts';
import type { Clock } from '../trial/clock.ts';
import { PACKAGES } from '../trial/packages.ts';
import { sha256Hex } from '../wire/digest.ts';
import type { PackageIndex } from '../wire/package-index.ts';
import type { ScoreRecord } from '../wire/score-record.ts';

const PAGES_AT_ONCE = 4;
const PAGE_DEADLINE_MS = 60_000;
const WHEEL_DEADLINE_MS = 300_000;
const ATTEMPTS = 3;
const PAUSE_MS = 500;

/** An agent's packages: what the record says of them, and their bytes. */
export interface Dependencies {
  list: ScoreRecord['dependencies'];
  wheels: readonly Wheel[];
}

/** The Python of the agent runtime image (`evaluator base --for agents`), and its glibc. */
const RUNTIME: WheelTarget = { python: 'cpython', minor: 13, glibcMinor: 41 };

/** Where an agent's wheels will run: in the agent runtime, or on whatever Python a task's image has. */
export function wheelTarget({ manifest }: Pick<AgentPackage, 'manifest'>): WheelTarget {
  return manifest.kind === 'brokered' ? RUNTIME : { python: 'any' };
}

/** What tells an agent's Python where its packages lie. */
export function packagesEnv({ wheels }: Pick<Dependencies, 'wheels'>): string[] {
  return wheels.length === 0 ? [] : [`PYTHONPATH=${PACKAGES}`];
}

export interface FetchContext {
  clock: Clock;
  signal: AbortSignal;
}

type Wanted = { url: string; accept: string; maxBytes: number; deadlineMs: number };

const mayPass = (found: Downloaded) =>
  'failed' in found ? found.failed === 'network' : found.status >= 500 || found.status === 429;

async function fetchPatiently(
  wanted: Wanted,
  index: PackageIndex,
  context: FetchContext,
): Promise<Downloaded> {
  for (let attempt = 1; ; attempt++) {
    const found = await download({ ...wanted, caPem: index.ca_pem, signal: context.signal });
    context.signal.throwIfAborted();
    if (attempt === ATTEMPTS || !mayPass(found)) return found;
    await context.clock.sleep(PAUSE_MS * attempt);
  }
}

async function fetchBytes(
  wanted: Wanted,
  { line }: Requirement,
  tooLarge: Code,
  index: PackageIndex,
  context: FetchContext,
): Promise<Buffer> {
  const found = await fetchPatiently(wanted, index, context);
  if ('failed' in found)
    throw found.failed === 'too_large'
      ? atLine(tooLarge, line, `${wanted.url}: more than ${wanted.maxBytes} bytes`)
      : atLine('index_unreachable', line, `${wanted.url}: ${found.why}`);
  if (found.status === 404)
    throw atLine('dependency_unavailable', line, `${wanted.url}: status 404, the index does not have it`);
  if (found.status !== 200)
    throw atLine(
      'index_unreachable',
      line,
      `${wanted.url}: status ${found.status}; a redirect is not followed`,
    );
  return found.body;
}

async function choose(
  requirement: Requirement,
  index: PackageIndex,
  target: WheelTarget,
  context: FetchContext,
): Promise<ChosenWheel> {
  const url = pageUrl(index.index, requirement);
  const wanted = { url, accept: SIMPLE_JSON, maxBytes: MAX_PAGE_BYTES, deadlineMs: PAGE_DEADLINE_MS };
  const page = await fetchBytes(wanted, requirement, 'index_malformed', index, context);
  return chooseWheel(page, url, requirement, target);
}

/** One after the other, each with what the ones before it have left: memory is bound by max_bytes. */
async function fetchWheels(
  chosen: readonly ChosenWheel[],
  index: PackageIndex,
  context: FetchContext,
): Promise<Wheel[]> {
  const wheels: Wheel[] = [];
  let left = index.max_bytes;
  for (const { requirement, url, sha256, filename } of chosen) {
    const wanted = { url, accept: '*/*', maxBytes: left, deadlineMs: WHEEL_DEADLINE_MS };
    const bytes = await fetchBytes(wanted, requirement, 'dependencies_too_large', index, context);
    const found = sha256Hex(bytes);
    if (found !== sha256)
      throw atLine(
        'dependency_hash_mismatch',
        requirement.line,
        `${filename}: SHA-256 ${found}, pinned ${sha256}`,
      );
    left -= bytes.length;
    wheels.push({ filename, bytes });
  }
  return wheels;
}

/**
 * Brings the wheels of an agent's `requirements.txt` from the mechanism's index, as data: each line is a pin
 * on the list, each file has a pinned hash and is looked into; nothing is run, nothing else is resolved.
 * @throws dependencies_not_offered, requirements_invalid, dependency_*, wheel_refused, dependencies_too_large,
 * index_*.
 */
export async function fetchDependencies(
  agent: Pick<AgentPackage, 'files'>,
  index: PackageIndex | null,
  target: WheelTarget,
  context: FetchContext,
): Promise<Dependencies> {
  const file = agent.files.find(({ path }) => path === REQUIREMENTS_NAME);
  const requirements = file === undefined ? [] : parseRequirements(file.bytes);
  if (requirements.length === 0) return { list: [], wheels: [] };
  if (index === null)
    throw new EvaluatorError(
      'dependencies_not_offered',
      `${REQUIREMENTS_NAME}: the mechanism offers no packages; leave the file out`,
    );
  verifyListed(requirements, index.names);
  const limit = pLimit(PAGES_AT_ONCE);
  const chosen = await Promise.all(
    requirements.map((requirement) => limit(() => choose(requirement, index, target, context))),
  );
  const wheels = await fetchWheels(chosen, index, context);
  await verifyWheels(wheels, index.max_bytes);
  const list = chosen.map(({ requirement: { name, version }, sha256 }) => ({ name, version, sha256 }));
  return { list, wheels };
}
