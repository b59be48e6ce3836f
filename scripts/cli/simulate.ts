import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { startGuestAgent } from '../../simulator/agent-api.ts';
import { pemChain } from '../../simulator/certificates.ts';
import { FAULT_NAMES, parseFault } from '../../simulator/faults.ts';
import { ROOT_CRL_PATH, startPcs } from '../../simulator/pcs.ts';
import { createPlatform, type Platform } from '../../simulator/platform.ts';
import { createKmsChain } from '../../simulator/tls-key.ts';
import { parseOptions, printHelp, required } from './arguments.ts';

const USAGE =
  'evaluator simulate --socket PATH --app-compose FILE --seed HEX [--out DIR] [--fault NAME[=VALUE]]... [--pcs-port N]';
const HELP = `usage: ${USAGE}

Serves a simulated TDX machine on a socket, as dstack's guest agent does. Prints one JSON line when it is ready and
runs until SIGINT or SIGTERM. Its quotes are signed under a root of its own: no verifier of Intel's takes them.

  --socket PATH            where it listens
  --app-compose FILE       what it was booted with: its compose hash is that file's
  --seed HEX               32 to 128 hex digits, from which all its keys come
  --out DIR                root, collateral and measurement go here, and the key service's root
  --fault NAME[=VALUE]     a machine that is wrong in this way; may be repeated
                           (${FAULT_NAMES.slice(0, 6).join(', ')},
                           ${FAULT_NAMES.slice(6).join(', ')})
  --pcs-port N             serve the collateral too, as Intel's server does, on this port of 127.0.0.1

exit codes: 2 usage, 130/143 ended by SIGINT, SIGTERM
`;

/** By convention 128 plus the number of the signal. */
const SIGNAL_EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

function parseSeed(hex: string): Buffer {
  if (/^(?:[0-9a-f]{2}){16,64}$/i.test(hex)) return Buffer.from(hex, 'hex');
  throw new EvaluatorError('usage', '--seed: 32 to 128 hex digits are needed, an even number of them');
}

function parsePort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new EvaluatorError('usage', `--pcs-port ${JSON.stringify(text)}: not a port from 1 to 65535`);
}

function readAppCompose(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new EvaluatorError('usage', `--app-compose ${path}: cannot be read`, { cause });
  }
}

/** What a challenge needs to judge this machine's quotes. */
async function writeTrust(dir: string, platform: Platform): Promise<void> {
  const { measurement, keyProvider, vmShape } = platform;
  const files = {
    'root.pem': platform.rootPem,
    'kms-root.pem': pemChain((await createKmsChain(platform)).root),
    'collateral.json': `${JSON.stringify(platform.collateral)}\n`,
    'measurement.json': `${JSON.stringify({ measurement, key_provider: keyProvider, vm_shape: vmShape })}\n`,
  };
  try {
    mkdirSync(dir, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  } catch (cause) {
    throw new EvaluatorError('usage', `--out ${dir}: cannot be written`, { cause });
  }
}

function untilSignal(): Promise<keyof typeof SIGNAL_EXITS> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
}

/**
 * `evaluator simulate`: a simulated TDX machine with dstack's guest agent on a socket. Prints one JSON line
 * when it is ready and runs until SIGINT or SIGTERM.
 * @returns the exit code: 130 or 143, 0 after --help.
 * @throws usage.
 */
export async function simulate(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    {
      socket: { type: 'string' },
      'app-compose': { type: 'string' },
      seed: { type: 'string' },
      out: { type: 'string' },
      fault: { type: 'string', multiple: true },
      'pcs-port': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const socketPath = required(values.socket, 'socket', USAGE);
  const composePath = required(values['app-compose'], 'app-compose', USAGE);
  const seed = parseSeed(required(values.seed, 'seed', USAGE));
  const faults = (values.fault ?? []).map(parseFault);
  const port = values['pcs-port'] === undefined ? null : parsePort(values['pcs-port']);

  const platform = await createPlatform({
    seed,
    appCompose: readAppCompose(composePath),
    nowMs: Date.now(),
    faults,
    ...(port === null ? {} : { rootCrlUrl: `http://127.0.0.1:${port}${ROOT_CRL_PATH}` }),
  });
  if (values.out !== undefined) await writeTrust(values.out, platform);
  const pcs = port === null ? null : await startPcs({ platform, port });
  try {
    const agent = await startGuestAgent({ socketPath, platform, faults });
    const ready = { event: 'ready', socket: socketPath, ...(pcs ? { pcs: pcs.url } : {}) };
    const stopped = untilSignal();
    process.stdout.write(`${JSON.stringify(ready)}\n`);
    const signal = await stopped;
    await agent.close();
    return SIGNAL_EXITS[signal];
  } finally {
    await pcs?.close();
  }
}
