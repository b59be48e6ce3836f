import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RESULT_CHECKS } from '../../../challenge/verify/result.ts';
import { verify } from '../../../scripts/cli/verify.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';
import { validResult } from '../../support/valid-result.ts';

const FILES = ['plan', 'plan-root', 'mechanism', 'allowlist', 'root', 'collateral'] as const;
const folder = scratchFolder();
const path = (name: string) => join(folder, name);
let resultBytes: Buffer;

function write(name: string, data: string | Buffer): string {
  writeFileSync(path(name), data);
  return path(name);
}
function argv(overrides: Partial<Record<(typeof FILES)[number] | 'result', string>> = {}): string[] {
  const file = (name: (typeof FILES)[number] | 'result') => overrides[name] ?? path(name);
  return [file('result'), ...FILES.flatMap((name) => [`--${name}`, file(name)])];
}

let out = '';
beforeAll(async () => {
  // The command has the machine's clock, so this evidence is of now.
  const { input, platform } = await validResult({ nowMs: Date.now() });
  resultBytes = input.resultBytes;
  write('result', input.resultBytes);
  write('plan', input.planBytes);
  const { publicKey, challengeId } = input.planRoot;
  write('plan-root', JSON.stringify({ public_key: publicKey, challenge_id: challengeId }));
  write('mechanism', input.mechanismBytes);
  write('allowlist', JSON.stringify(input.allowlist, null, 2));
  write('root', platform.rootPem);
  write('collateral', JSON.stringify(platform.collateral));
});
beforeEach(() => {
  out = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += String(text);
    return true;
  });
});
afterEach(() => vi.restoreAllMocks());

describe('evaluator verify', () => {
  it('prints a line a check and ends with 0', async () => {
    expect(await verify(argv())).toBe(0);
    expect(out.trimEnd().split('\n')).toEqual([
      ...RESULT_CHECKS.map((name) => `ok           ${name}`),
      'verified',
    ]);
  });

  it('as JSON prints one object', async () => {
    expect(await verify([...argv(), '--json'])).toBe(0);
    const verdict = JSON.parse(out) as { verified: boolean; checks: { name: string }[] };
    expect(verdict.verified).toBe(true);
    expect(verdict.checks.map(({ name }) => name)).toEqual([...RESULT_CHECKS]);
  });

  it('ends with 3 and the code of the check that failed', async () => {
    const result = write('changed', resultBytes.toString().replace('"tier":"tdx"', '"tier":"sgx"'));
    expect(await verify(argv({ result }))).toBe(3);
    expect(out).toContain('FAILED       result_schema  schema_invalid');
    expect(out).toContain('NOT CHECKED  plan_document  not reached');
    expect(out).toMatch(/NOT VERIFIED\n$/);
  });

  it('judges the TCB by what it was told to accept', async () => {
    expect(await verify([...argv(), '--accept-tcb', 'OutOfDate'])).toBe(3);
    expect(await verify([...argv(), '--accept-tcb', 'OutOfDate', '--accept-tcb', 'UpToDate'])).toBe(0);
  });

  it('takes the last RESULT= line of a log', async () => {
    const log = `{not a result\nRESULT={"old":1}\nRESULT=${resultBytes.toString()}\nafterwards\n`;
    expect(await verify(argv({ result: write('log', `log\n${log}`) }))).toBe(0);
    expect(await verify(argv({ result: write('line', `RESULT=${resultBytes.toString()}`) }))).toBe(0);
  });

  it('tells its usage', async () => {
    expect(await verify(['--help'])).toBe(0);
    expect(out).toMatch(/^usage: evaluator verify RESULT/);
  });

  const unusable: [string, () => string[], RegExp][] = [
    ['no RESULT', () => argv().slice(1), /exactly one RESULT/],
    ['two RESULTs', () => [...argv(), 'another'], /exactly one RESULT/],
    ['an option missing', () => argv().slice(0, -2), /--collateral is missing/],
    ['an unknown option', () => [...argv(), '--lenient'], /lenient/],
    ['a file that is not there', () => argv({ plan: '/nowhere' }), /--plan: cannot read \/nowhere/],
    ['a RESULT that is none', () => argv({ result: write('none', 'hello') }), /neither a RESULT/],
    [
      'an allowlist that is not JSON',
      () => argv({ allowlist: write('a', '[') }),
      /--allowlist \S+: document is not/,
    ],
    [
      'an allowlist without entries',
      () => argv({ allowlist: write('b', '{"schema_version":1,"entries":[]}') }),
      /entries/,
    ],
    [
      'a key given twice',
      () => argv({ 'plan-root': write('c', '{"public_key":"","public_key":""}') }),
      /twice/,
    ],
    [
      'a plan root without a key',
      () => argv({ 'plan-root': write('d', '{"challenge_id":"x"}') }),
      /public_key/,
    ],
    ['a root that is no certificate', () => argv({ root: write('e', 'x') }), /--root \S+: TDX root/],
    ['collateral without CRLs', () => argv({ collateral: write('f', '{}') }), /--collateral \S+: .*pck_crl/],
  ];
  it.each(unusable)('%s is refused as usage, in a sentence', async (_name, args, message) => {
    expect(await rejectionCode(verify(args()))).toBe('usage');
    await expect(verify(args())).rejects.toThrow(message);
    expect(out).toBe('');
  });
});
