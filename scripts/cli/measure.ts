import { writeFileSync } from 'node:fs';
import { canonicalAppCompose, composeHash } from '../../compose/app-compose.ts';
import { KNOWN_MEASUREMENTS } from '../../compose/known-measurements.ts';
import { MAX_APP_COMPOSE_BYTES } from '../../compose/parse.ts';
import { type DraftEntry, isComplete, judge, UNKNOWN, unknownFields } from '../../compose/verdict.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { allowlistEntrySchema, allowlistSchema } from '../../guest/wire/measurement.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { readAttestation } from '../measure/attestation.ts';
import { type Described, entryOfCapture, entryOfCompose } from '../measure/entry.ts';
import { parseOptions, printHelp } from './arguments.ts';
import { COMPOSE_HELP, COMPOSE_OPTIONS, readComposed } from './compose-options.ts';
import { readInput } from './read-input.ts';

const USAGE = `evaluator measure --image REF --plan-root HEX --challenge-id ID [--role eval|review]
                         [--agent-env NAME,…] [--key-provider-id HEX] DESCRIPTION [OUTPUT]
       evaluator measure --quote FILE [--event-log FILE] [--app-compose FILE] [--image REF]
                         DESCRIPTION [OUTPUT]
       evaluator measure --every-platform --image REF … [--revision REV] --out FILE
       DESCRIPTION: [--os VERSION] [--shape NAME] [--revision REV]
       OUTPUT: [--allowlist FILE] [--out FILE] [--json]`;
const HELP = `usage: ${USAGE}

Makes an allowlist entry, from what will be deployed or from the attestation of a deployment, and says whether
a list has it. What nobody has seen is UNKNOWN. A quote's signature is not checked here: see verify.

${COMPOSE_HELP}
  --quote FILE           a captured TDX quote, raw or hex
  --event-log FILE       its event log; all four registers must replay
  --app-compose FILE     the deployed app-compose; it must be the one in the log
  --os VERSION           the OS image, as dstack-0.5.9
  --shape NAME           the VM's shape, as tdx.small
  --revision REV         the git revision of the image
  --allowlist FILE       say IN-LIST, NOT-IN-LIST or UNKNOWN
  --out FILE             write a list of this one entry; refused while anything in it is UNKNOWN
  --every-platform       write a list with an entry for each pair of OS and shape whose registers are known
  --json                 one JSON object on stdout

exit codes: 0 known, or IN-LIST; 3 something is UNKNOWN, or NOT-IN-LIST; 2 unusable input
`;

const OPTIONS = {
  ...COMPOSE_OPTIONS,
  quote: { type: 'string' },
  'event-log': { type: 'string' },
  'app-compose': { type: 'string' },
  os: { type: 'string' },
  shape: { type: 'string' },
  revision: { type: 'string' },
  'every-platform': { type: 'boolean' },
  allowlist: { type: 'string' },
  out: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;
type Values = ReturnType<typeof parseOptions<typeof OPTIONS>>;

/** The hash that a cloud gives an app-compose, however it is spelled: nulls dropped, sorted, compact. */
function deployedHash(path: string): string {
  const limits = { maxBytes: MAX_APP_COMPOSE_BYTES, maxDepth: 16 };
  return composeHash(canonicalAppCompose(parseForeignJson(readInput(path, 'app-compose'), limits)));
}

function capture(values: Values, quotePath: string, described: Described) {
  const log = values['event-log'];
  const quote = readInput(quotePath, 'quote');
  const captured = readAttestation(
    quote,
    log === undefined ? null : readInput(log, 'event-log').toString('utf8'),
  );
  const { measurement, storageFs } = captured;
  const path = values['app-compose'];
  if (path !== undefined) {
    const hash = deployedHash(path);
    if (measurement.compose_hash !== UNKNOWN && measurement.compose_hash !== hash) {
      throw new EvaluatorError(
        'compose_mismatch',
        `--app-compose ${path}: its hash is ${hash}, the event log says ${measurement.compose_hash}`,
      );
    }
  }
  const notes =
    storageFs === 'ext4' || storageFs === UNKNOWN
      ? []
      : [`storage-fs is ${storageFs}: no verifier accepts it, whatever the list says`];
  return { entry: entryOfCapture(captured, described), notes };
}

function measured(values: Values): { entry: DraftEntry; notes: readonly string[] } {
  const { os = null, shape = null, revision = null, image = null, quote } = values;
  const described = { osVersion: os, shape, imageRef: image, gitRevision: revision };
  if (quote !== undefined) return capture(values, quote, described);
  if (values['event-log'] !== undefined || values['app-compose'] !== undefined) {
    throw new EvaluatorError('usage', `--event-log and --app-compose belong to a --quote\nusage: ${USAGE}`);
  }
  return { entry: entryOfCompose(readComposed(values, USAGE), described), notes: [] };
}

function completed(path: string, entry: DraftEntry) {
  if (!isComplete(entry)) {
    throw new EvaluatorError(
      'measurement_incomplete',
      `--out ${path}: not written, UNKNOWN are ${unknownFields(entry).join(', ')}`,
    );
  }
  return parseSchema(allowlistEntrySchema, entry, 'entry');
}

function writeList(path: string, drafts: readonly DraftEntry[]): void {
  const list = { schema_version: 1, entries: drafts.map((entry) => completed(path, entry)) };
  try {
    writeFileSync(path, `${JSON.stringify(list, null, 2)}\n`);
  } catch (cause) {
    throw new EvaluatorError('usage', `--out ${path}: cannot be written`, { cause });
  }
}

function verdictOf(entry: DraftEntry, path: string) {
  const json = parseForeignJson(readInput(path, 'allowlist'), { maxBytes: 4 * 1024 * 1024, maxDepth: 8 });
  return judge(entry, parseSchema(allowlistSchema, json, 'allowlist'));
}

/** A list with an entry for each platform that is known: what a release publishes. @throws usage. */
function measureEvery(values: Values): number {
  const { os, shape, quote, allowlist, image = null, revision = null, out } = values;
  if (os !== undefined || shape !== undefined || quote !== undefined || allowlist !== undefined)
    throw new EvaluatorError('usage', '--every-platform takes no --os, --shape, --quote or --allowlist');
  if (out === undefined)
    throw new EvaluatorError('usage', `--out FILE is missing: where to write the list\nusage: ${USAGE}`);
  const composed = readComposed(values, USAGE);
  const entries = KNOWN_MEASUREMENTS.map((known) =>
    entryOfCompose(composed, {
      osVersion: known.os_version,
      shape: known.shape,
      imageRef: image,
      gitRevision: revision,
    }),
  );
  writeList(out, entries);
  process.stdout.write(`${out}: ${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}\n`);
  return 0;
}

/**
 * `evaluator measure`: an allowlist entry, and whether a list has it.
 * @returns the exit code.
 * @throws usage, schema_invalid, env_name_refused, os_not_allowed, measurement_incomplete, compose_mismatch, and
 *   the codes of a quote or log that cannot be read.
 */
export async function measure(argv: readonly string[]): Promise<number> {
  const values = parseOptions(argv, OPTIONS, USAGE);
  if (values.help) return printHelp(HELP);
  if (values['every-platform']) return measureEvery(values);
  const { entry, notes } = measured(values);
  const unknown = unknownFields(entry);
  const judged = values.allowlist === undefined ? null : verdictOf(entry, values.allowlist);
  if (values.out !== undefined) writeList(values.out, [entry]);
  const report = { entry, unknown, verdict: judged?.verdict ?? null, differs: judged?.differs ?? [], notes };
  const lines = [
    JSON.stringify(entry, null, 2),
    ...notes.map((note) => `note: ${note}`),
    ...(judged === null
      ? []
      : [`${judged.verdict}${judged.differs.length > 0 ? `: ${judged.differs.join(', ')}` : ''}`]),
  ];
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : `${lines.join('\n')}\n`);
  const good = judged === null ? unknown.length === 0 : judged.verdict === 'IN-LIST';
  return good ? 0 : 3;
}
