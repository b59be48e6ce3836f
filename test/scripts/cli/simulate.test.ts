import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { QuoteVerifier } from '@phala/dcap-qvl';
import { DstackClient } from '@phala/dstack-sdk';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseQuote } from '../../../guest/attest/quote.ts';
import { keyProviderSchema, measurementSchema, vmShapeSchema } from '../../../guest/wire/measurement.ts';
import { simulate } from '../../../scripts/cli/simulate.ts';
import { X509Certificate } from '../../../simulator/x509.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

const MAIN = join(import.meta.dirname, '../../../scripts/cli/main.ts');
const SEED = '00112233445566778899aabbccddeeff';

let folder: string;
let children: ChildProcess[];
beforeEach(() => {
  folder = scratchFolder();
  writeFileSync(join(folder, 'app-compose.json'), '{"name":"desk"}');
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
});

const socket = () => join(folder, 'dstack.sock');
const needed = () => [
  '--socket',
  socket(),
  '--app-compose',
  join(folder, 'app-compose.json'),
  '--seed',
  SEED,
];

/** Starts the verb as a process and waits for its ready line. */
async function start(...more: string[]) {
  const child = spawn(process.execPath, [MAIN, 'simulate', ...needed(), ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, ready: JSON.parse(line.toString()) as unknown };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  const exited = once(child, 'exit');
  child.kill(signal);
  return (await exited)[0];
}

describe('evaluator simulate', () => {
  it('serves a machine whose quotes verify with the files it wrote, until SIGTERM', async () => {
    const out = join(folder, 'deep/out');
    const { child, ready } = await start('--out', out);
    expect(ready).toEqual({ event: 'ready', socket: socket() });
    const quote = Buffer.from((await new DstackClient(socket()).getQuote(Buffer.alloc(64))).quote, 'hex');
    const root = new X509Certificate(readFileSync(join(out, 'root.pem'), 'utf8'));
    const collateral = JSON.parse(readFileSync(join(out, 'collateral.json'), 'utf8'));
    const verifier = new QuoteVerifier(Buffer.from(root.rawData));
    expect(verifier.verify(quote, collateral, Math.floor(Date.now() / 1000)).status).toBe('UpToDate');
    const trust = JSON.parse(readFileSync(join(out, 'measurement.json'), 'utf8'));
    expect(parseQuote(quote).mrtd).toBe(measurementSchema.parse(trust.measurement).mrtd);
    keyProviderSchema.parse(trust.key_provider);
    vmShapeSchema.parse(trust.vm_shape);
    expect(await end(child, 'SIGTERM')).toBe(143);
    expect(existsSync(socket())).toBe(false);
  });

  it('shows the faults it is given and exits with 130 on SIGINT', async () => {
    const { child } = await start('--fault', 'quote-v5', '--fault', 'trailing-zeros=9');
    const quote = Buffer.from((await new DstackClient(socket()).getQuote(Buffer.alloc(64))).quote, 'hex');
    expect(parseQuote(quote)).toMatchObject({ version: 5, trailing: Buffer.alloc(9) });
    expect(await end(child, 'SIGINT')).toBe(130);
  });

  it('takes the place of a socket that a killed one left behind, not of a living one', async () => {
    const { child } = await start();
    await end(child, 'SIGKILL');
    expect(existsSync(socket())).toBe(true);
    await start();
    expect(await rejectionCode(simulate(needed()))).toBe('usage');
    expect(await new DstackClient(socket()).isReachable()).toBe(true);
  });

  it('ends with 2 and a sentence when it is asked for something that it cannot do', async () => {
    const child = spawn(process.execPath, [MAIN, 'simulate', ...needed(), '--fault', 'gremlins']);
    children.push(child);
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect(code).toBe(2);
    expect(said).toContain('gremlins');
  });

  it('describes itself', async () => {
    const child = spawn(process.execPath, [MAIN, 'simulate', '--help']);
    children.push(child);
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(code).toBe(0);
    expect(said).toMatch(/^usage: evaluator simulate --socket PATH/);
  });

  it.each([
    ['no socket', []],
    ['an unknown option', ['--sokcet', 'x']],
    ['no compose file', ['--socket', 's', '--app-compose', '/nowhere/app-compose.json', '--seed', SEED]],
    ['a seed of odd length', ['--socket', 's', '--app-compose', 'x', '--seed', `${SEED}0`]],
    ['a short seed', ['--socket', 's', '--app-compose', 'x', '--seed', 'aa']],
    ['no port', ['--socket', 's', '--app-compose', 'x', '--seed', SEED, '--pcs-port', '0']],
    [
      'a port beyond the last',
      ['--socket', 's', '--app-compose', 'x', '--seed', SEED, '--pcs-port', '65536'],
    ],
  ])('refuses %s', async (_, argv) => {
    expect(await rejectionCode(simulate(argv))).toBe('usage');
  });
});
