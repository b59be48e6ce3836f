import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { evaluator } from '../../support/evaluator.ts';
import { realTdx } from '../../support/real-tdx.ts';
import { scratchFolder } from '../../support/scratch.ts';

const IMAGE = `ghcr.io/owner/evaluator@sha256:${'a'.repeat(64)}`;
const DEPLOYED = ['--image', IMAGE, '--plan-root', 'b'.repeat(64), '--challenge-id', 'chal-1'];
const SMALL = ['--os', 'dstack-0.5.9', '--shape', 'tdx.small', '--revision', 'abc'];
const KMS = ['--key-provider-id', 'c0ffee'];

async function measure(args: readonly string[]) {
  const { code, stdout, stderr } = await evaluator(['measure', ...args, '--json']);
  if (stdout === '') throw new Error(stderr);
  return { code, ...JSON.parse(stdout) };
}

const refused = (code: string) => ({ code: 2, stdout: '', stderr: expect.stringContaining(`[${code}]`) });

describe('evaluator measure, of what will be deployed', () => {
  it('is complete for a known pair, and its own list has it', async () => {
    const out = join(scratchFolder(), 'allowlist.json');
    const args = [...DEPLOYED, ...SMALL, ...KMS];
    const { code, entry, unknown } = await measure([...args, '--out', out]);
    const { compose_hash } = JSON.parse((await evaluator(['compose', ...DEPLOYED, ...KMS, '--json'])).stdout);
    expect({ code, unknown }).toEqual({ code: 0, unknown: [] });
    expect(entry.measurement.compose_hash).toBe(compose_hash);
    expect(JSON.parse(await readFile(out, 'utf8'))).toEqual({ schema_version: 1, entries: [entry] });
    expect(await measure([...args, '--allowlist', out])).toMatchObject({ code: 0, verdict: 'IN-LIST' });
    expect(await measure([...args, '--agent-env', 'A', '--allowlist', out])).toMatchObject({
      code: 3,
      verdict: 'NOT-IN-LIST',
      differs: ['compose_hash'],
    });
  });

  it('invents no register of a pair that nobody has seen, and writes no such list', async () => {
    const large = [...DEPLOYED, ...KMS, '--os', 'dstack-0.5.9', '--shape', 'tdx.large', '--revision', 'abc'];
    const { code, entry, unknown } = await measure(large);
    expect({ code, unknown }).toEqual({
      code: 3,
      unknown: ['mrtd', 'rtmr0', 'rtmr1', 'rtmr2', 'os_image_hash'],
    });
    expect(entry).toMatchObject({ vm_shape: { vcpu: 4, memory_mb: 8192 }, image_ref: IMAGE });
    const out = join(scratchFolder(), 'allowlist.json');
    expect(await evaluator(['measure', ...large, '--out', out])).toMatchObject(
      refused('measurement_incomplete'),
    );
  });

  it.each<[string, string[], string]>([
    ['a development OS', [...DEPLOYED, '--os', 'dstack-dev-0.5.9'], 'os_not_allowed'],
    ['an OS without init scripts', [...DEPLOYED, '--os', 'dstack-0.5.4'], 'os_not_allowed'],
    ['an unknown shape', [...DEPLOYED, '--shape', 'tdx.huge'], 'usage'],
    ['a log without a quote', [...DEPLOYED, '--event-log', 'x'], 'usage'],
    ['nothing', [], 'usage'],
  ])('refuses %s', async (_, args, code) => {
    expect(await evaluator(['measure', ...args])).toMatchObject(refused(code));
  });

  it('refuses a quote that is none', async () => {
    const quote = join(scratchFolder(), 'quote.hex');
    await writeFile(quote, 'ff'.repeat(700));
    expect(await evaluator(['measure', '--quote', quote])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('[quote_malformed]'),
    });
  });
});

describe.skipIf(realTdx.absent)(`evaluator measure, of the genuine attestation (${realTdx.why})`, () => {
  async function captured() {
    const folder = scratchFolder();
    const [quote, log, compose, list] = ['quote', 'log', 'compose', 'list'].map((name) => join(folder, name));
    if (!quote || !log || !compose || !list) throw new Error('four paths');
    await writeFile(quote, realTdx.quote().toString('hex'));
    await writeFile(log, realTdx.eventLog());
    await writeFile(compose, realTdx.appCompose());
    return { quote, log, compose, list };
  }

  it('reads OS, shape, measurement and key provider, and that its disk is zfs', async () => {
    const { quote, log, compose } = await captured();
    const seen = await measure(['--quote', quote, '--event-log', log, '--app-compose', compose]);
    expect(seen).toMatchObject({
      code: 3,
      unknown: ['image_ref', 'git_revision'],
      notes: [expect.stringContaining('zfs')],
      entry: {
        measurement: {
          compose_hash: '1b8a63efb0f7afda1e52c823f39cc0a79d6d75c2e7a086b58e0e6a2db548524b',
          os_image_hash: '5c6d8f757e3adb0563efc809710076a631442db3b4de02ad32d33fe1994721e0',
        },
        key_provider: { name: 'phala' },
        vm_shape: { vcpu: 1, memory_mb: 2048 },
        os_version: 'dstack-0.5.9',
      },
    });
  });

  it('judges it: in its own list, unknown without the log, not in another', async () => {
    const { quote, log, list } = await captured();
    const capture = ['--quote', quote, '--event-log', log];
    await measure([...capture, '--image', IMAGE, '--revision', 'abc', '--out', list]);
    const judged = (args: string[]) => measure([...args, '--allowlist', list]);
    expect(await judged(capture)).toMatchObject({ code: 0, verdict: 'IN-LIST' });
    expect(await judged(['--quote', quote])).toMatchObject({ code: 3, verdict: 'UNKNOWN' });
    const { entries } = JSON.parse(await readFile(list, 'utf8'));
    entries[0].measurement.rtmr0 = '0'.repeat(96);
    await writeFile(list, JSON.stringify({ schema_version: 1, entries }));
    expect(await judged(capture)).toMatchObject({ code: 3, verdict: 'NOT-IN-LIST', differs: ['rtmr0'] });
  });

  it('refuses a log that is not the quote’s, and a compose that is not the log’s', async () => {
    const { quote, log, compose } = await captured();
    await writeFile(compose, JSON.stringify({ ...JSON.parse(realTdx.appCompose()), name: 'other' }));
    const capture = ['measure', '--quote', quote, '--event-log', log];
    expect(await evaluator([...capture, '--app-compose', compose])).toMatchObject(
      refused('compose_mismatch'),
    );
    await writeFile(log, JSON.stringify(JSON.parse(realTdx.eventLog()).slice(1)));
    expect(await evaluator(capture)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('[event_log_replay_mismatch]'),
    });
  });
});
