import { describe, expect, it } from 'vitest';
import type { WheelTarget } from '../../../guest/agent/dependencies/wheel-name.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { fetchDependencies } from '../../../guest/stages/dependencies.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import type { PackageIndex } from '../../../guest/wire/package-index.ts';
import { type IndexedFile, pin, startIndexDouble, wheel } from '../../support/package-index.ts';

const RUNTIME: WheelTarget = { python: 'cpython', minor: 13, glibcMinor: 36 };
const ANY: WheelTarget = { python: 'any' };
/** Waits for nothing. */
const CONTEXT = {
  clock: { monotonicMs: () => 0, sleep: async () => undefined },
  signal: new AbortController().signal,
};

const agent = (requirements: string | null) => ({
  files:
    requirements === null
      ? []
      : [{ path: 'requirements.txt', bytes: Buffer.from(requirements), executable: false }],
});
const fetched = (requirements: string | null, index: PackageIndex | null, target: WheelTarget = RUNTIME) =>
  fetchDependencies(agent(requirements), index, target, CONTEXT);

async function refusalOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => expect.fail('nothing was refused'),
    (cause: unknown) => cause,
  );
  if (!isEvaluatorError(error)) throw error;
  return `${error.code}: ${error.message}`;
}

const IDNA = wheel('idna', '3.9', { 'idna/__init__.py': 'x = 1\n' });
const PURE: IndexedFile = { filename: 'idna-3.9-py3-none-any.whl', bytes: IDNA };
const SDIST: IndexedFile = { filename: 'idna-3.9.tar.gz', bytes: Buffer.from('source') };

describe('fetchDependencies', () => {
  it('asks for nothing where nothing is required', async () => {
    expect(await fetched(null, null)).toEqual({ list: [], wheels: [] });
    expect(await fetched('# none\n', null)).toEqual({ list: [], wheels: [] });
  });

  it('brings each pinned wheel from the index, without a word about us', async () => {
    const other = wheel('other_pkg', '1.0+cpu', { 'other.py': '' });
    const index = await startIndexDouble({
      idna: [SDIST, { ...PURE, filename: 'idna-3.8-py3-none-any.whl' }, PURE],
      'other-pkg': [{ filename: 'other_pkg-1.0+cpu-py3-none-any.whl', bytes: other }],
    });
    const requirements = pin('Other.Pkg', '1.0+cpu', other) + pin('idna', '3.9', SDIST.bytes, IDNA);
    const { list, wheels } = await fetched(requirements, index.section);
    expect(list).toEqual([
      { name: 'other-pkg', version: '1.0+cpu', sha256: sha256Hex(other) },
      { name: 'idna', version: '3.9', sha256: sha256Hex(IDNA) },
    ]);
    expect(wheels.map(({ bytes }) => bytes)).toEqual([other, IDNA]);
    expect(index.requests.map(({ path }) => path).sort()).toEqual([
      '/files/idna-3.9-py3-none-any.whl',
      '/files/other_pkg-1.0+cpu-py3-none-any.whl',
      '/simple/idna/',
      '/simple/other-pkg/',
    ]);
    expect(index.requests.every(({ authorization }) => authorization === undefined)).toBe(true);
    expect(index.requests.find(({ path }) => path.startsWith('/simple'))?.accept).toBe(
      'application/vnd.pypi.simple.v1+json',
    );
  });

  it('takes machine code for the agent runtime, and pure Python alone for any other', async () => {
    const own = wheel('idna', '3.9', { 'idna/fast.so': 'machine' });
    const files = [PURE, { filename: 'idna-3.9-cp313-cp313-manylinux_2_17_x86_64.whl', bytes: own }];
    const index = await startIndexDouble({ idna: files });
    const requirements = pin('idna', '3.9', IDNA, own);
    expect((await fetched(requirements, index.section, RUNTIME)).list[0]?.sha256).toBe(sha256Hex(own));
    expect((await fetched(requirements, index.section, ANY)).list[0]?.sha256).toBe(sha256Hex(IDNA));
    expect(await refusalOf(fetched(pin('idna', '3.9', own), index.section, ANY))).toMatch(
      /^dependency_unavailable: requirements\.txt:1: .*pure Python only/,
    );
  });

  it('refuses what cannot be had, before anything is fetched', async () => {
    const index = await startIndexDouble({ idna: [PURE] }, ['idna']);
    expect(await refusalOf(fetched(pin('idna', '3.9', IDNA), null))).toMatch(/^dependencies_not_offered/);
    expect(await refusalOf(fetched('idna>=3', index.section))).toMatch(
      /^requirements_invalid: requirements\.txt:1: /,
    );
    expect(await refusalOf(fetched(`\n${pin('evil', '1', IDNA)}`, index.section))).toMatch(
      /^dependency_not_listed: requirements\.txt:2: evil /,
    );
    expect(index.requests).toEqual([]);
  });

  it.each<[string, IndexedFile[], RegExp]>([
    ['source alone', [SDIST], /no wheel; only wheels/],
    ['a wheel that was taken back', [{ ...PURE, yanked: 'broken' }], /yanked/],
    ['a wheel that was taken back without a word', [{ ...PURE, yanked: '' }], /yanked/],
    ['another hash', [{ ...PURE, sha256: '0'.repeat(64) }], /hash is not pinned/],
    ['another version', [{ ...PURE, filename: 'idna-3.10-py3-none-any.whl' }], /no file of 3\.9/],
    ['another project', [{ ...PURE, filename: 'ldna-3.9-py3-none-any.whl' }], /no file of 3\.9/],
    [
      'another machine',
      [{ ...PURE, filename: 'idna-3.9-cp313-cp313-win_amd64.whl' }],
      /does not run on CPython 3\.13/,
    ],
    ['nothing', [], /no file of 3\.9/],
  ])('refuses an index with %s', async (_, files, why) => {
    const index = await startIndexDouble({ idna: files });
    const refusal = await refusalOf(fetched(pin('idna', '3.9', IDNA, SDIST.bytes), index.section));
    expect(refusal).toMatch(/^dependency_unavailable: requirements\.txt:1: idna==3\.9: /);
    expect(refusal).toMatch(why);
  });

  const elsewhere = { location: 'https://elsewhere.invalid/' };
  it.each<
    [string, string, { status: number; headers?: Record<string, string>; body: Buffer | string }, RegExp]
  >([
    ['no such project', '/simple/idna/', { status: 404, body: '' }, /^dependency_unavailable: .*404/],
    ['a page of HTML', '/simple/idna/', { status: 200, body: '<a href="x">x</a>' }, /^index_malformed/],
    [
      'another version of the API',
      '/simple/idna/',
      { status: 200, body: '{"meta":{"api-version":"2.0"},"files":[]}' },
      /^index_malformed/,
    ],
    [
      'a page elsewhere',
      '/simple/idna/',
      { status: 301, headers: elsewhere, body: '' },
      /^index_unreachable: .*301; a redirect is not followed/,
    ],
    [
      'a file elsewhere',
      '/files/idna-3.9-py3-none-any.whl',
      { status: 302, headers: elsewhere, body: '' },
      /^index_unreachable: .*302/,
    ],
    [
      'other bytes',
      '/files/idna-3.9-py3-none-any.whl',
      { status: 200, body: 'changed' },
      /^dependency_hash_mismatch: requirements\.txt:1: /,
    ],
    [
      'an encoded file',
      '/files/idna-3.9-py3-none-any.whl',
      { status: 200, headers: { 'content-encoding': 'gzip' }, body: 'x' },
      /^index_unreachable: .*encoded/,
    ],
    [
      'a file without an end',
      '/files/idna-3.9-py3-none-any.whl',
      { status: 200, body: Buffer.alloc(1_000_001) },
      /^dependencies_too_large/,
    ],
    [
      'a failing file',
      '/files/idna-3.9-py3-none-any.whl',
      { status: 503, body: '' },
      /^index_unreachable: .*503/,
    ],
  ])('refuses %s', async (_, path, answer, refusal) => {
    const index = await startIndexDouble({ idna: [PURE] });
    index.answers.set(path, answer);
    expect(await refusalOf(fetched(pin('idna', '3.9', IDNA), index.section))).toMatch(refusal);
  });

  it.each([
    ['http', 'http://127.0.0.1/x.whl'],
    ['a file of this machine', 'file:///etc/passwd'],
    ['credentials', 'https://user:word@127.0.0.1/x.whl'],
    ['nothing', 'https://'],
  ])('refuses a file at %s', async (_, url) => {
    const index = await startIndexDouble({ idna: [{ ...PURE, url }] });
    expect(await refusalOf(fetched(pin('idna', '3.9', IDNA), index.section))).toMatch(/^index_malformed/);
  });

  it('refuses a wheel that no archive reader should meet, though its hash is pinned', async () => {
    const hostile = wheel('idna', '3.9', {}, [{ name: '../../etc/x.py' }]);
    const index = await startIndexDouble({ idna: [{ ...PURE, bytes: hostile }] });
    expect(await refusalOf(fetched(pin('idna', '3.9', hostile), index.section))).toMatch(
      /^wheel_refused: idna-3\.9-py3-none-any\.whl: .*"\.\."/,
    );
  });

  it('believes the named issuer alone', async () => {
    const index = await startIndexDouble({ idna: [PURE] });
    const section = { ...index.section, ca_pem: null };
    expect(await refusalOf(fetched(pin('idna', '3.9', IDNA), section))).toMatch(/^index_unreachable/);
    expect(index.requests).toEqual([]);
  });

  it('asks again when an outage may pass', async () => {
    const index = await startIndexDouble({ idna: [PURE] });
    const good = index.answers.get('/simple/idna/');
    index.answers.set('/simple/idna/', { status: 503, body: '' });
    const sleep = async () => {
      if (good) index.answers.set('/simple/idna/', good);
    };
    const context = { ...CONTEXT, clock: { ...CONTEXT.clock, sleep } };
    const { list } = await fetchDependencies(
      agent(pin('idna', '3.9', IDNA)),
      index.section,
      RUNTIME,
      context,
    );
    expect(list).toHaveLength(1);
  });
});
