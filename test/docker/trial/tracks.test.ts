import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeF64be } from '../../../guest/wire/f64.ts';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { hookedEngine } from '../../support/hooked-engine.ts';
import { containersOf, judged } from '../../support/judged.ts';
import { rejectionCode } from '../../support/throws.ts';
import { KINDS, type ScriptOptions, startTrial, type TrialHarness } from '../../support/trial.ts';

const MIB = 1024 * 1024;

/** What only the ground truth says. */
const HIDDEN = `hidden-${randomBytes(12).toString('hex')}.py`;
const audited = [
  { path: 'environment/artifact/README.md', bytes: Buffer.from('# read me\n'), executable: false },
];
const truth = {
  path: 'tests/ground_truth.json',
  bytes: Buffer.from(
    `{"schema_version":1,"secrets":[{"file":"${HIDDEN}","line":7},{"file":"a.py","line":7}]}`,
  ),
  executable: false,
};

/** `alive` leaves the probe, `says JSON` an answer. */
const PRELUDE = `set -e
field() { python3 -c "import json; c = json.load(open('/task/context.json')); print(c['probe']['$1'], end='')"; }
probe=$(field path)
alive() { field content > "$probe"; }
says() { printf '%s' "$1" > /task/result.json; }
`;
const BLOCK = '{"verdict":{"decision":"block"},"evidence":{},"findings":[]}';
const found = (...files: string[]) =>
  JSON.stringify({
    verdict: { decision: 'WARN' },
    evidence: { audit: { files_analysed: 1 } },
    findings: files.map((file) => ({ kind: 'secret', file, line: 7 })),
  });

let trial: TrialHarness;
beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

const audit = (script: string, options: Partial<ScriptOptions> = {}): Promise<RepRecord[]> =>
  trial.run({ track: 'skills', audited, tests: [truth], ...options, script: PRELUDE + script });

/** A rep's verdict, F2, reward or failure, in a word. */
function wordOf(rep: RepRecord | undefined): string {
  if (rep?.value && 'verdict' in rep.value) return rep.value.verdict;
  if (rep?.value && 'score_f64be' in rep.value) return `F2 ${decodeF64be(rep.value.score_f64be)}`;
  return judged(rep);
}
const one = async (script: string, options: Partial<ScriptOptions> = {}) =>
  wordOf((await audit(script, options))[0]);

const limits = { storage_bytes: 2048 * 1024 * MIB };

describe.concurrent.each(KINDS)('%s: the probe', (_kind, as) => {
  it.each([
    ['as it was asked for', 'alive', 'BLOCK'],
    ['with another name for it', 'alive; ln "$probe" /task/other', 'BLOCK'],
    ['that is missing', ':', 'liveness'],
    ['with another content', 'printf 00000000000000000000000000000000 > "$probe"', 'liveness'],
    [
      'that is a link to the right bytes',
      'field content > /task/right; ln -s /task/right "$probe"',
      'liveness',
    ],
    ['below a link', 'alive; mv /task/workspace /task/w; ln -s /task/w /task/workspace', 'liveness'],
    ['that is a directory', 'mkdir "$probe"', 'liveness'],
    ['that is a pipe', 'mkfifo "$probe"', 'liveness'],
    ['of 1 TiB', 'alive; truncate -s 1T "$probe"', 'liveness'],
  ])('%s', async (_, script, expected) => {
    expect(await one(`says '${BLOCK}'\n${script}`, { ...as, limits })).toBe(expected);
  });
});

describe.concurrent('the content of a probe', () => {
  it.each([
    ['with a newline more', 'alive; echo >> "$probe"'],
    ['that is empty', ': > "$probe"'],
    ['that is not UTF-8', "head -c 32 /dev/zero | tr '\\0' '\\377' > \"$probe\""],
  ])('%s is liveness', async (_, script) => {
    expect(await one(`says '${BLOCK}'\n${script}`)).toBe('liveness');
  });
});

describe.concurrent.each(KINDS)('%s: the answer', (_kind, as) => {
  it.each([
    ['missing', ':'],
    ['garbage', 'says garbage'],
    [
      'a link to a good one',
      `says '${BLOCK}'; mv /task/result.json /task/r; ln -s /task/r /task/result.json`,
    ],
    ['a directory', 'mkdir /task/result.json'],
    ['a pipe', 'mkfifo /task/result.json'],
    ['a sparse file of 1 TiB', `says '${BLOCK}'; truncate -s 1T /task/result.json`],
    ['1 GB', `says '${BLOCK}'; fallocate -l 1G /task/result.json`],
  ])('that is %s is malformed_output', async (_, script) => {
    expect(await one(`alive\n${script}`, { ...as, limits })).toBe('malformed_output');
  });

  it('is read when everything that could still change it is dead', async () => {
    const writer = `(while :; do printf '${BLOCK.replace('block', 'allow')}' > /task/result.json; done) &`;
    expect(await one(`alive; says '${BLOCK}'\n${writer}`, as)).toMatch(/^(?:ALLOW|malformed_output)$/);
  });
});

describe.concurrent('the content of an answer', () => {
  it.each([
    ['empty', 'says ""'],
    ['behind a byte order mark', `says "$(printf '\\xef\\xbb\\xbf')"'${BLOCK}'`],
    ['with NaN in it', `says '${BLOCK.replace('"block"', '"block","risk_score":NaN')}'`],
    ['larger than 1 MiB', `says '${BLOCK}'; head -c 1048577 /dev/zero | tr '\\0' ' ' >> /task/result.json`],
    ['far too deep', `python3 -c "print('[' * 500000)" > /task/result.json`],
  ])('that is %s is malformed_output', async (_, script) => {
    expect(await one(`alive\n${script}`)).toBe('malformed_output');
  });
});

it('a brokered agent may fetch its context and bring its answer as files', async () => {
  const brokered = `import json
class Agent:
    async def run(self, instruction, environment, context):
        await environment.download_dir("/task", "/root/task")
        probe = json.load(open("/root/task/context.json"))["probe"]
        for path, text in {probe["path"]: probe["content"], "/task/result.json": '${BLOCK}'}.items():
            with open("/root/f", "w") as f: f.write(text)
            await environment.upload_file("/root/f", path)
`;
  expect(await one('', { brokered })).toBe('BLOCK');
});

it('every rep has a probe of its own, and no rep knows its number, its task or what is hidden', async () => {
  const looking = `alive
if env | grep -qi malicious || grep -rqi -e malicious -e '${HIDDEN.slice(0, 7)}[0-9a-f]' /task/[!i]* /logs /tests 2>/dev/null
then says '${BLOCK}'; else says '${BLOCK.replace('block', 'allow')}'; fi`;
  const reps = await audit(looking, { reps: 3, taskId: 'malicious-7' });
  expect(reps.map(wordOf)).toEqual(['ALLOW', 'ALLOW', 'ALLOW']);
  expect(new Set(reps.map(({ probe_sha256 }) => probe_sha256)).size).toBe(3);
  expect(reps.map(({ verifier_mode }) => verifier_mode)).toEqual([null, null, null]);
});

it('opens the ground truth of a repository when its last agent is dead, and a label never', async () => {
  const running: string[][] = [];
  const onTestsRead = async () => {
    running.push((await containersOf(trial)).filter((name) => name.includes('watched#')));
  };
  const script = `alive; says '${found(HIDDEN)}'`;
  const options = { reps: 2, taskId: 'watched', onTestsRead } as const;
  expect((await audit(script, { ...options, track: 'repositories' })).map(wordOf)).toEqual([
    expect.stringMatching(/^F2 0\.55/),
    expect.stringMatching(/^F2 0\.55/),
  ]);
  expect(running).toHaveLength(1);
  await audit(`alive; says '${BLOCK}'`, options);
  expect(running).toHaveLength(1);
});

describe('a dead container that somebody else touches before it is read', () => {
  it.each([
    ['started', ['start']],
    ['removed', ['rm', '-f']],
  ])('%s: the run ends', async (_, command) => {
    const engine = hookedEngine(trial.context.engine, {
      after: async (call, [id]) => {
        if (call === 'kill') await promisify(execFile)('docker', [...command, String(id)]);
      },
    });
    expect(await rejectionCode(audit(`alive; says '${BLOCK}'`, { engine }))).toBe('container_interfered');
  });
});
