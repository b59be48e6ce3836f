import { writeFileSync } from 'node:fs';
import { composeHash } from '../../compose/app-compose.ts';
import { firstDifference, parseAppCompose, renderComposed } from '../../compose/parse.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseOptions, printHelp } from './arguments.ts';
import { COMPOSE_HELP, COMPOSE_OPTIONS, readComposed } from './compose-options.ts';
import { readInput } from './read-input.ts';

const USAGE = `evaluator compose --image REF --plan-root HEX --challenge-id ID [--role eval|review]
                         [--agent-env NAME,…] [--key-provider-id HEX] [--out FILE] [--check FILE] [--json]
       evaluator compose --check FILE [--json]`;
const HELP = `usage: ${USAGE}

Renders the app-compose of a guest image. Its compose hash is the SHA-256 of exactly the bytes that --out
writes; deploy those bytes.

${COMPOSE_HELP}
  --out FILE             where the app-compose goes
  --check FILE           compare FILE byte for byte; without --image, with what FILE itself says
  --json                 one JSON object on stdout

exit codes: 0 done, 2 unusable input, or FILE is another compose
`;

/** @throws compose_mismatch. */
function verifySame(found: Buffer, expected: Buffer, path: string): void {
  if (found.equals(expected)) return;
  const problem = firstDifference(found, expected);
  throw new EvaluatorError('compose_mismatch', `--check ${path}: ${problem}; deploy what --out writes`);
}

function write(path: string, bytes: Buffer): void {
  try {
    writeFileSync(path, bytes);
  } catch (cause) {
    throw new EvaluatorError('usage', `--out ${path}: cannot be written`, { cause });
  }
}

/**
 * `evaluator compose`: an image's app-compose and its hash.
 * @returns the exit code.
 * @throws usage, schema_invalid, env_name_refused, compose_mismatch.
 */
export async function compose(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    {
      ...COMPOSE_OPTIONS,
      out: { type: 'string' },
      check: { type: 'string' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const { out, check } = values;
  const found = check === undefined ? null : readInput(check, 'check');
  const composed =
    values.image === undefined && found !== null ? parseAppCompose(found) : readComposed(values, USAGE);
  const bytes = renderComposed(composed);
  if (found !== null) verifySame(found, bytes, check ?? '');
  if (out !== undefined) write(out, bytes);
  const { role, imageRef, keyProviderId } = composed;
  const hash = composeHash(bytes);
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ compose_hash: hash, role, image_ref: imageRef, key_provider_id: keyProviderId, out: out ?? null, checked: check ?? null })}\n`
      : `compose hash ${hash}\n`,
  );
  return 0;
}
