import { EvaluatorError } from '../../guest/errors.ts';
import { withLedgers } from '../ledger/open.ts';
import {
  DECISIONS,
  type Decision,
  decide,
  historyOf,
  type Standing,
  type Step,
  standingOf,
  standings,
} from '../ledger/operate.ts';
import { parseOptions, printHelp, required } from './arguments.ts';
import { existingPath } from './paths.ts';

const USAGE = `evaluator ledger list --db FILE [--json]
       evaluator ledger show ID --db FILE [--json]
       evaluator ledger reopen|revoke ID --db FILE --reason TEXT [--json]
       evaluator ledger cancel ID --db FILE [--json]`;
const HELP = `usage: ${USAGE}

What an operator may see and decide in the ledger of a challenge, which may go on running meanwhile (docs/ledger.md).
ID is a run's, or a review session's.

  list           every run and every review, and how it stands
  show           one, with its history
  reopen         sets the outcome of a run that was rejected or brought no result aside, or that of a review that did
                 not allow, so that the agent may have another; the old one stays in the history
  revoke         takes a review's allow back: it admits nothing more, and no run that it admitted is accepted
  cancel         calls a review off that has not asked its model yet
  --db FILE      the challenge's database (ledger.sqlite in its state_dir)
  --reason TEXT  why, in 1 to 500 printable characters; kept in the history
  --json         one JSON object on stdout

exit codes: 0 done, 2 usage, an unknown ID or a step that cannot be taken, 5 infrastructure
`;
const ACTIONS = ['list', 'show', ...DECISIONS] as const;

const line = ({ kind, id, state, reason_code: why, agent_hash: agent }: Standing): string =>
  `${kind.padEnd(6)}  ${id}  ${state}${why === null ? '' : ` (${why})`}  agent ${agent.slice(0, 12)}`;

const stepLine = ({ at_ms: at, from, to, reason_code: why, note }: Step): string =>
  `  ${new Date(at).toISOString()}  ${from ?? '-'} -> ${to}${why === null ? '' : ` (${why})`}${note === null ? '' : `: ${note}`}`;

function print(format: 'json' | 'lines', value: object, lines: readonly string[]): void {
  const text = format === 'json' ? `${JSON.stringify(value)}\n` : lines.map((one) => `${one}\n`).join('');
  process.stdout.write(text);
}

/** @throws usage. */
function reasonOf(decision: Decision, reason: string | undefined): string {
  if (decision !== 'cancel') return required(reason, 'reason', USAGE);
  if (reason === undefined) return '';
  throw new EvaluatorError('usage', `ledger: --reason: a cancellation has none\nusage: ${USAGE}`);
}

/**
 * `evaluator ledger`: an operator's look into a challenge's ledger, and the decisions that are theirs.
 * @returns the exit code.
 * @throws usage, run_unknown, reopen_reason_invalid, ledger_transition_refused, ledger_unreadable.
 */
export async function ledger(argv: readonly string[]): Promise<number> {
  const [word, ...rest] = argv;
  if (word === '--help' || word === '-h') return printHelp(HELP);
  const action = ACTIONS.find((known) => known === word);
  if (action === undefined)
    throw new EvaluatorError('usage', `ledger: ${ACTIONS.join(', ')} are known\nusage: ${USAGE}`);
  const [id, options] =
    action === 'list' || rest[0]?.startsWith('-') ? [undefined, rest] : [rest[0], rest.slice(1)];
  const values = parseOptions(
    options,
    {
      db: { type: 'string' },
      reason: { type: 'string' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const db = existingPath('ledger', 'db', required(values.db, 'db', USAGE));
  const format = values.json ? 'json' : 'lines';
  if (action === 'list') {
    const all = withLedgers(db, standings);
    print(format, { ledger: all }, all.map(line));
    return 0;
  }
  if (id === undefined) throw new EvaluatorError('usage', `ledger ${action}: whose ID?\nusage: ${USAGE}`);
  if (action === 'show') {
    const { found, history } = withLedgers(db, (ledgers) => {
      const one = standingOf(ledgers, id);
      return { found: one, history: historyOf(ledgers, one) };
    });
    print(format, { ...found, history }, [line(found), ...history.map(stepLine)]);
    return 0;
  }
  const reason = reasonOf(action, values.reason);
  const now = withLedgers(db, (ledgers) => decide(ledgers, id, action, reason, Date.now()));
  print(format, now, [line(now)]);
  return 0;
}
