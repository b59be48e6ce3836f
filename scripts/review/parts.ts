import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadIssuer, planRootOf } from '../../challenge/index.ts';
import { renderReviewCompose } from '../../compose/review-compose.ts';
import type { AgentPackage } from '../../guest/agent/types.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { OWN_POLICY } from '../../guest/review/prompt.ts';
import { type Assignment, parseAssignment } from '../../guest/wire/assignment.ts';
import { routingTo } from '../../guest/wire/model-request.ts';
import type { PlanRoot } from '../../guest/wire/plan-signature.ts';
import { guestSourceDigest } from '../run/guest-source.ts';
import { type Running, startProcess, startServer } from '../run/process.ts';
import { ROOT, type SimulatedMachine, startSimulator } from '../run/simulator.ts';
import type { ReviewCliOptions } from './options.ts';

/** One local review's parts, so that a signal can end them all. */
export interface LocalReview {
  options: ReviewCliOptions;
  agent: AgentPackage;
  /** The bundle's and the corpus' exact bytes. */
  rules: Buffer;
  corpus: Buffer;
  /** Scratch folder: sockets, keys, the challenge's state. */
  work: string;
  running: Running[];
  /** Called with what ends the review before the guest does. */
  fail: (error: EvaluatorError) => void;
  onLog: (process: string, line: string) => void;
}

/** The machine that the guest runs on, as its assignment names it. */
export interface ReviewMachine extends SimulatedMachine {
  reviewApp: Assignment['review_app'];
  planRoot: PlanRoot;
  /** The measured command line. */
  guestArguments: readonly string[];
}

/** A server's end before the guest's ends the review. */
function keep(local: LocalReview, running: Running): void {
  local.running.push(running);
  running.exited.then((code) =>
    local.fail(
      new EvaluatorError('process_failed', `${running.name} ended (${code}) before the review was over`),
    ),
  );
}

/** The simulated TDX machine, booted with the review image's compose. */
export async function startReviewMachine(local: LocalReview): Promise<ReviewMachine> {
  const { options, work } = local;
  const state = join(work, 'challenge');
  mkdirSync(state, { mode: 0o700 });
  const planRoot = planRootOf(await loadIssuer(state));
  const imageRef = `localhost/cvm-evaluator-review-source@sha256:${guestSourceDigest(ROOT)}`;
  // Measured, so that no review made with them passes for one of the published image.
  const localArguments = options.access ? ['--model-endpoint', options.access.endpoint] : ['--no-model'];
  const machine = await startSimulator({
    work,
    appCompose: renderReviewCompose({ imageRef, planRoot, localArguments }),
    onLog: (line) => local.onLog('simulator', line),
  });
  keep(local, machine.running);
  const { measurement, keyProvider, vmShape } = machine;
  const { publicKey, challengeId } = planRoot;
  return {
    ...machine,
    planRoot,
    guestArguments: ['--plan-root', publicKey, '--challenge-id', challengeId, ...localArguments],
    reviewApp: {
      image_ref: imageRef,
      compose_hash: measurement.compose_hash,
      measurement,
      key_provider: keyProvider,
      vm_shape: vmShape,
    },
  };
}

/** What the challenge hands out for a review. */
export interface IssuedReview {
  assignment: Assignment;
  token: string;
}

/** The challenge: issues the assignment and serves it over TLS on loopback; its outcome goes to `out`. */
export async function startReviewChallenge(
  local: LocalReview,
  machine: ReviewMachine,
): Promise<IssuedReview> {
  const { options, work } = local;
  const file = (name: string, bytes: Buffer): string => {
    writeFileSync(join(work, name), bytes);
    return join(work, name);
  };
  const { image_ref, measurement, key_provider, vm_shape } = machine.reviewApp;
  const entry = {
    measurement,
    key_provider,
    vm_shape,
    os_version: 'simulated',
    image_ref,
    git_revision: 'local',
  };
  const state = join(work, 'challenge');
  const config = {
    state_dir: state,
    host: '127.0.0.1',
    port: 0,
    out_dir: options.out,
    tdx_root_pem: machine.rootPem,
    collateral: machine.collateral,
    allowlist: { schema_version: 1, entries: [entry] },
    accepted_tcb: ['UpToDate'],
    agent_zip_path: file('agent.zip', local.agent.zip),
    rules_path: file('rules.json', local.rules),
    corpus_path: file('corpus.json', local.corpus),
    policy: { model: options.model, routing: routingTo(options.provider), ...OWN_POLICY },
    review_app: machine.reviewApp,
  };
  const { running, ready } = await startServer<{ assignment_id: string }>({
    name: 'challenge',
    script: join(ROOT, 'challenge/review/main.ts'),
    args: [],
    env: {},
    input: JSON.stringify(config),
    onStderr: (line) => local.onLog('challenge', line),
  });
  keep(local, running);
  return {
    assignment: parseAssignment(readFileSync(join(options.out, 'assignment.json'))),
    token: readFileSync(join(state, `session-token-${ready.assignment_id}`), 'ascii'),
  };
}

/** The guest, with what a deployed VM would hand it: token, address and key as variables, nothing in argv. */
export function startReviewGuest(
  local: LocalReview,
  machine: ReviewMachine,
  { assignment, token }: IssuedReview,
  handlers: { onStdout: (line: string) => void; onStderr: (line: string) => void },
): Running {
  const running = startProcess({
    name: 'guest',
    script: join(ROOT, 'guest/review.ts'),
    args: [...machine.guestArguments, '--guest-agent-socket', machine.socket],
    env: {
      REVIEW_API_BASE_URL: assignment.api_base_url,
      REVIEW_SERVER_CA: Buffer.from(assignment.server_ca_pem).toString('base64url'),
      REVIEW_SESSION_TOKEN: token,
      ...(local.options.access ? { OPENROUTER_API_KEY: local.options.access.apiKey } : {}),
    },
    input: '',
    ...handlers,
  });
  local.running.push(running);
  return running;
}
