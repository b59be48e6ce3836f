import { writeGoldenKey } from '../tasks/golden-key.ts';
import { parseOptions, printHelp, required } from './arguments.ts';

const USAGE = 'evaluator keygen --out FILE [--json]';
const HELP = `usage: ${USAGE}

Makes a golden key: 32 random bytes in hex, readable by you alone. Keep it with the challenge; it never
enters an image, and whoever has it can read every cache that was sealed under it.

  --out FILE  where the key goes; an existing file is never overwritten
  --json      one JSON object on stdout

exit codes: 0 done, 2 usage, or a file that is there already or cannot be written
`;

/**
 * `evaluator keygen`: a new golden key in a file of mode 0600. The key itself is never printed.
 * @returns the exit code.
 * @throws usage, golden_key_exists.
 */
export async function keygen(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    { out: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const out = required(values.out, 'out', USAGE);
  await writeGoldenKey(out);
  process.stdout.write(values.json ? `${JSON.stringify({ out })}\n` : `golden key ${out}\n`);
  return 0;
}
