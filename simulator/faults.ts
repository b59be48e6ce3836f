import { EvaluatorError } from '../guest/errors.ts';

/** The calls of the guest agent that the simulator answers. */
export const AGENT_METHODS = ['Info', 'GetTlsKey', 'GetKey', 'GetQuote', 'Version'] as const;
export type AgentMethod = (typeof AGENT_METHODS)[number];

/**
 * What can be made wrong on demand. Some are seen in the agent's replies only (slow-quote, hung-call,
 * blank-digests, hex-prefix, empty-names), some in the TD (wrong-measurement, debug-td, storage-zfs), some
 * in its quotes (trailing-zeros, quote-v5) and some in the collateral (tcb-expired, tcb-out-of-date, pck-revoked).
 */
export type Fault =
  /** GetQuote answers after `ms` milliseconds. */
  | { name: 'slow-quote'; ms: number }
  /** The call is accepted and never answered. */
  | { name: 'hung-call'; method: AgentMethod }
  /** Digests of runtime events are empty, as newer agents send them. */
  | { name: 'blank-digests' }
  /** Every hex value begins with 0x. */
  | { name: 'hex-prefix' }
  /** Runtime events have no name. */
  | { name: 'empty-names' }
  /** The TD runs with an MRTD other than the published one. */
  | { name: 'wrong-measurement' }
  /** The TD is debuggable. */
  | { name: 'debug-td' }
  /** TCB info and QE identity were to be renewed a month ago. */
  | { name: 'tcb-expired' }
  /** The platform lags behind the newest TCB level. */
  | { name: 'tcb-out-of-date' }
  /** The CRL lists the platform's PCK certificate. */
  | { name: 'pck-revoked' }
  /** `bytes` zero bytes follow the quote. */
  | { name: 'trailing-zeros'; bytes: number }
  /** The storage is not ext4. */
  | { name: 'storage-zfs' }
  /** The agent hands out version 5 quotes. */
  | { name: 'quote-v5' };

type Named<N extends Fault['name']> = Extract<Fault, { name: N }>;

/** The fault of that name in the list, if it is there. */
export function findFault<N extends Fault['name']>(faults: readonly Fault[], name: N): Named<N> | undefined {
  return faults.find((fault): fault is Named<N> => fault.name === name);
}

/** True when the list has a fault of that name. */
export function hasFault(faults: readonly Fault[], name: Fault['name']): boolean {
  return findFault(faults, name) !== undefined;
}

function count(name: string, value: string | undefined, max: number): number {
  const n = value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (n >= 1 && n <= max) return n;
  throw new EvaluatorError('usage', `--fault ${name}=N: N must be a whole number from 1 to ${max}`);
}

function agentMethod(value: string | undefined): AgentMethod {
  const method = AGENT_METHODS.find((known) => known === value);
  if (method) return method;
  throw new EvaluatorError('usage', `--fault hung-call=METHOD: METHOD is one of ${AGENT_METHODS.join(', ')}`);
}

const PARSERS: { [N in Fault['name']]: ((value: string | undefined) => Named<N>) | 'plain' } = {
  'slow-quote': (value) => ({ name: 'slow-quote', ms: count('slow-quote', value, 600_000) }),
  'hung-call': (value) => ({ name: 'hung-call', method: agentMethod(value) }),
  'blank-digests': 'plain',
  'hex-prefix': 'plain',
  'empty-names': 'plain',
  'wrong-measurement': 'plain',
  'debug-td': 'plain',
  'tcb-expired': 'plain',
  'tcb-out-of-date': 'plain',
  'pck-revoked': 'plain',
  'trailing-zeros': (value) => ({ name: 'trailing-zeros', bytes: count('trailing-zeros', value, 65_536) }),
  'storage-zfs': 'plain',
  'quote-v5': 'plain',
};

/** Every fault name, for help texts and tests. */
export const FAULT_NAMES = Object.keys(PARSERS) as Fault['name'][];

/**
 * Reads NAME or NAME=VALUE as the command line has it.
 * @throws usage when the name is unknown, a value is missing, wrong or not expected.
 */
export function parseFault(text: string): Fault {
  const [head = '', value] = text.split(/=(.*)/s, 2);
  const name = FAULT_NAMES.find((known) => known === head);
  if (!name) {
    throw new EvaluatorError(
      'usage',
      `--fault ${JSON.stringify(head)} is unknown; there are ${FAULT_NAMES.join(', ')}`,
    );
  }
  const parse = PARSERS[name];
  if (parse !== 'plain') return parse(value);
  if (value !== undefined) throw new EvaluatorError('usage', `--fault ${name} takes no value`);
  return { name } as Fault;
}
