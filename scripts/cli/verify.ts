import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ResultInput, ResultVerdict } from '../../challenge/verify/result.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { printHelp } from './arguments.ts';

const USAGE = `usage: evaluator verify RESULT --plan FILE --plan-root FILE --mechanism FILE --allowlist FILE
                        --root FILE --collateral FILE [--accept-tcb STATUS]... [--json]

Checks a RESULT offline and prints one line per check.

  RESULT              the exact RESULT bytes, or a log with a RESULT= line (the last one counts)
  --plan FILE         the signed plan
  --plan-root FILE    {"public_key","challenge_id"}: the key that plans are signed under
  --mechanism FILE    the mechanism that the plan names
  --allowlist FILE    the published measurements
  --root FILE         the trusted TDX root certificate, PEM
  --collateral FILE   Intel's collateral for the platform, JSON
  --accept-tcb STATUS a TCB status that is good enough; may be repeated (default: UpToDate alone)
  --json              one JSON object instead of lines

exit codes: 0 verified, 3 not verified, 2 unusable input
`;

const OPTIONS = {
  plan: { type: 'string' },
  'plan-root': { type: 'string' },
  mechanism: { type: 'string' },
  allowlist: { type: 'string' },
  root: { type: 'string' },
  collateral: { type: 'string' },
  'accept-tcb': { type: 'string', multiple: true },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;
const FILES = ['plan', 'plan-root', 'mechanism', 'allowlist', 'root', 'collateral'] as const;
type FileOption = (typeof FILES)[number];

interface Arguments {
  result: string;
  files: Record<FileOption, string>;
  acceptedTcb: ReadonlySet<string>;
  format: 'lines' | 'json';
}

function usage(problem: string): EvaluatorError {
  return new EvaluatorError('usage', `verify: ${problem}\n${USAGE.split('\n\n')[0]}`);
}

/** @returns null when help was asked for. @throws usage. */
function parseArguments(argv: readonly string[]): Arguments | null {
  let parsed: ReturnType<typeof read>;
  const read = () => parseArgs({ args: [...argv], options: OPTIONS, strict: true, allowPositionals: true });
  try {
    parsed = read();
  } catch (cause) {
    throw usage(cause instanceof Error ? (cause.message.split('. ')[0] ?? '') : String(cause));
  }
  const { values, positionals } = parsed;
  if (values.help) return null;
  const [result] = positionals;
  if (result === undefined || positionals.length > 1) throw usage('exactly one RESULT file is needed');
  const file = (name: FileOption): string => {
    const path = values[name];
    if (path === undefined) throw usage(`--${name} is missing`);
    return path;
  };
  return {
    result,
    files: {
      plan: file('plan'),
      'plan-root': file('plan-root'),
      mechanism: file('mechanism'),
      allowlist: file('allowlist'),
      root: file('root'),
      collateral: file('collateral'),
    },
    acceptedTcb: new Set(values['accept-tcb'] ?? ['UpToDate']),
    format: values.json ? 'json' : 'lines',
  };
}

function readInput(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
    throw new EvaluatorError('usage', `verify: ${what}: cannot read ${path} (${code})`, { cause });
  }
}

/** The exact bytes; of a log, what follows the last `RESULT=` at the start of a line. */
function resultBytes(bytes: Buffer, path: string): Buffer {
  if (bytes[0] === 0x7b) return bytes;
  const log = `\n${bytes.toString('latin1')}`;
  const start = log.lastIndexOf('\nRESULT=');
  if (start < 0) {
    throw new EvaluatorError(
      'usage',
      `verify: RESULT: ${path} is neither a RESULT nor a log with a RESULT= line`,
    );
  }
  const body = log.slice(start + '\nRESULT='.length);
  const end = body.indexOf('\n');
  return Buffer.from(end < 0 ? body : body.slice(0, end), 'latin1');
}

/** Reads `read()` and names option and file in what it throws. */
function named<T>(option: FileOption, path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new EvaluatorError('usage', `verify: --${option} ${path}: ${message}`, { cause });
  }
}

async function loadInput({ result, files, acceptedTcb }: Arguments): Promise<ResultInput> {
  const [
    { z },
    { allowlistSchema },
    { ed25519PublicKey, id, parseSchema },
    { parseForeignJson },
    config,
    collateral,
  ] = await Promise.all([
    import('zod'),
    import('../../guest/wire/measurement.ts'),
    import('../../guest/wire/scalars.ts'),
    import('../../guest/wire/foreign-json.ts'),
    import('../../challenge/verify/root.ts'),
    import('../../challenge/verify/collateral.ts'),
  ]);
  const planRootSchema = z.strictObject({ public_key: ed25519PublicKey, challenge_id: id });
  const json = <T>(option: FileOption, parse: (value: unknown) => T): T => {
    const bytes = readInput(files[option], `--${option}`);
    return named(option, files[option], () =>
      parse(parseForeignJson(bytes, { maxBytes: 16 * 1024 * 1024, maxDepth: 32 })),
    );
  };
  const planRoot = json('plan-root', (value) => parseSchema(planRootSchema, value, 'plan-root'));
  const rootPem = readInput(files.root, '--root').toString('latin1');
  return {
    resultBytes: resultBytes(readInput(result, 'RESULT'), result),
    planBytes: readInput(files.plan, '--plan'),
    planRoot: { publicKey: planRoot.public_key, challengeId: planRoot.challenge_id },
    mechanismBytes: readInput(files.mechanism, '--mechanism'),
    allowlist: json('allowlist', (value) => parseSchema(allowlistSchema, value, 'allowlist')),
    rootDer: named('root', files.root, () => config.parseRoot(rootPem)),
    collateral: json('collateral', collateral.parseCollateral),
    acceptedTcb,
    nowMs: Date.now(),
  };
}

const MARKS = { ok: 'ok         ', failed: 'FAILED     ', not_checked: 'NOT CHECKED' } as const;

function lines({ verified, checks }: ResultVerdict): string {
  const rows = checks.map(({ name, status, code, detail }) => {
    const why = [code, detail].filter((part) => part !== null && part !== '').join(': ');
    return `${MARKS[status]}  ${name}${why === '' ? '' : `  ${why}`}`;
  });
  return `${[...rows, verified ? 'verified' : 'NOT VERIFIED'].join('\n')}\n`;
}

/**
 * `evaluator verify`: checks a RESULT and prints what it checked.
 * @returns the exit code: 0 verified, 3 not verified.
 * @throws usage: unusable input.
 */
export async function verify(argv: string[]): Promise<number> {
  const args = parseArguments(argv);
  if (args === null) return printHelp(USAGE);
  const input = await loadInput(args);
  const { verifyResult } = await import('../../challenge/verify/result.ts');
  const verdict = await verifyResult(input);
  process.stdout.write(args.format === 'json' ? `${JSON.stringify(verdict)}\n` : lines(verdict));
  return verdict.verified ? 0 : 3;
}
