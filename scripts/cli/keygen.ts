import { writeGoldenKey } from '../tasks/golden-key.ts';
import { parseOptions, required } from './arguments.ts';

const USAGE = 'evaluator keygen --out FILE [--json]';

/**
 * `evaluator keygen`: a new golden key in a file of mode 0600. The key itself is never printed.
 * @returns the exit code.
 * @throws usage, golden_key_exists.
 */
export async function keygen(argv: readonly string[]): Promise<number> {
  const values = parseOptions(argv, { out: { type: 'string' }, json: { type: 'boolean' } }, USAGE);
  const out = required(values.out, 'out', USAGE);
  await writeGoldenKey(out);
  process.stdout.write(values.json ? `${JSON.stringify({ out })}\n` : `golden key ${out}\n`);
  return 0;
}
