import { EvaluatorError } from '../../guest/errors.ts';
import { asEvaluatorError, exitCodeOf } from '../../guest/process/exit-codes.ts';

type Verb = (argv: string[]) => Promise<number>;

/** Verbs are loaded when called: `verify` must not pay for what `run` needs. */
const VERBS: Readonly<Record<string, { summary: string; load: () => Promise<Verb> }>> = {
  run: {
    summary: 'judge an agent on tasks, end to end, with a simulated TDX machine',
    load: async () => (await import('./run.ts')).run,
  },
  review: {
    summary: 'review an agent: static findings, one model call, an attested verdict',
    load: async () => (await import('./review.ts')).review,
  },
  verify: {
    summary: 'check a RESULT offline, one line per check',
    load: async () => (await import('./verify.ts')).verify,
  },
  compose: {
    summary: "render an image's app-compose and its hash",
    load: async () => (await import('./compose.ts')).compose,
  },
  measure: {
    summary: 'make an allowlist entry, or say whether a list has a quote',
    load: async () => (await import('./measure.ts')).measure,
  },
  bake: {
    summary: 'make a digest-pinned task cache from folders of plain tasks',
    load: async () => (await import('./bake.ts')).bake,
  },
  toolchain: {
    summary: "build the verifier's tools, or refresh the lock of their Debian packages",
    load: async () => (await import('./toolchain.ts')).toolchain,
  },
  keygen: {
    summary: 'make a golden key, under which `bake --seal` hides tests',
    load: async () => (await import('./keygen.ts')).keygen,
  },
  base: {
    summary: 'make base images where no registry answers: of tasks, of the guest, or of agents',
    load: async () => (await import('./base.ts')).base,
  },
  build: {
    summary: 'build a measured image of the checked-out commit, reproducibly',
    load: async () => (await import('./build.ts')).build,
  },
  deploy: {
    summary: 'deploy a guest image to Phala Cloud, wait for its judgement, delete the VM',
    load: async () => (await import('./deploy.ts')).deploy,
  },
  ledger: {
    summary: "see a challenge's runs and reviews; re-open, revoke or cancel one",
    load: async () => (await import('./ledger.ts')).ledger,
  },
  simulate: {
    summary: 'serve a simulated TDX machine on a socket',
    load: async () => (await import('./simulate.ts')).simulate,
  },
};

const HELP = `usage: evaluator VERB [options]

${Object.entries(VERBS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)
  .join('\n')}

\`evaluator VERB --help\` describes a verb.
exit codes: 0 accepted or done, 1 rejected, 2 usage or refused input, 3 verification failed,
            5 infrastructure or run aborted (no RESULT), 130/143 ended by a signal
`;

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    (name === undefined ? process.stderr : process.stdout).write(HELP);
    return name === undefined ? 2 : 0;
  }
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (!verb) {
    throw new EvaluatorError(
      'usage',
      `unknown verb ${JSON.stringify(name)}; known: ${Object.keys(VERBS).join(', ')}`,
    );
  }
  return (await verb.load())(rest);
}

/** For a person, never a stack: a line with the code, below it the verb's usage; the exit code says the rest. */
function fail(error: unknown): number {
  const { message, code } = asEvaluatorError(error);
  const [line, ...usage] = message.split('\n');
  process.stderr.write(`${[`evaluator: ${line} [${code}]`, ...usage].join('\n')}\n`);
  return exitCodeOf(asEvaluatorError(error));
}

// A reader that has gone (`| head`) is no failure of ours.
process.stdout.on('error', () => undefined);
process.on('uncaughtException', (error) => process.exit(fail(error)));
process.exitCode = await main(process.argv.slice(2)).catch(fail);
