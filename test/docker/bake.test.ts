import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCache } from '../../guest/tasks/cache.ts';
import { taskKey } from '../../guest/tasks/task-key.ts';
import { type BakeOptions, bakeTasks } from '../../scripts/tasks/bake.ts';
import { taskImageName } from '../../scripts/tasks/task-image.ts';
import { type Files, PLAIN_TASK, writeFiles } from '../support/plain-task.ts';
import { scratchFolder } from '../support/scratch.ts';
import { GOLDEN_KEY, labelled } from '../support/sealed-cache.ts';
import { rejectionCode } from '../support/throws.ts';
import { ENGINE_SOCKET, ensureTestImage } from './fixtures.ts';

const run = promisify(execFile);
const docker = (...args: string[]) => run('docker', args, { env: { ...process.env, DOCKER_BUILDKIT: '0' } });
const BASE = 'cvm-evaluator-test/busybox:1';
const built = new Set<string>();

beforeAll(async () => {
  await ensureTestImage();
});

afterAll(async () => {
  for (const image of built) await docker('rmi', '-f', image).catch(() => {});
});

/** Random text keeps one run's images apart from another's. */
const task = (dockerfile: string, more: Files = {}): Files => ({
  ...PLAIN_TASK,
  'environment/Dockerfile': `FROM ${BASE}\n${dockerfile}\n`,
  'environment/run.txt': `${process.pid} ${Math.random()}\n`,
  ...more,
});

async function bake(tasks: Readonly<Record<string, Files>>, change: Partial<BakeOptions> = {}) {
  const folder = scratchFolder();
  for (const [name, files] of Object.entries(tasks)) await writeFiles(join(folder, 'plain', name), files);
  const options: BakeOptions = {
    from: [join(folder, 'plain')],
    out: join(folder, 'cache'),
    only: [],
    track: null,
    live: [],
    seal: null,
    engineSocket: ENGINE_SOCKET,
    toolchain: null,
    check: null,
    signal: new AbortController().signal,
    onProgress: () => {},
    ...change,
  };
  const run = () =>
    bakeTasks(options).then((result) => {
      for (const { task_id, image } of result.manifest.tasks) built.add(taskImageName(task_id, image));
      return result;
    });
  return { folder, options, run };
}

describe('bakeTasks', () => {
  it('bakes a cache that opens, without the solution, and builds the image', async () => {
    const files = task('COPY data/x run.txt /app/', {
      'environment/data/x': 'content',
      'solution/solve.sh': 'echo 1 > /app/answer\n',
      'tests/test.sh': 'pytest --ctrf /logs/verifier/ctrf.json\n',
    });
    const { options, run } = await bake({ demo: files });
    const { cacheDigest, manifest } = await run();
    const cache = await openCache(options.out);
    expect(cache.cacheDigest).toBe(cacheDigest);
    expect(manifest.tasks[0]).toMatchObject({
      task_id: 'demo',
      image_source: 'built',
      base: 'registry',
      verifier: 'restart',
      evidence: { kind: 'ctrf', passed: null },
      file_count: 6,
    });
    expect(manifest.tasks[0]?.source_digest).not.toBe(manifest.tasks[0]?.task_digest);
    expect(await readdir(join(options.out, 'demo'))).not.toContain('solution');
    const { stdout } = await docker(
      'run',
      '--rm',
      '--network=none',
      cache.task('demo').image,
      '/bin/busybox',
      'cat',
      '/app/x',
    );
    expect(stdout).toBe('content');
  });

  it('gives the same bytes for the same tasks', async () => {
    const files = task('COPY run.txt /app/');
    const once = await bake({ demo: files, other: files });
    const again = await bake({ demo: files, other: files });
    expect((await once.run()).cacheDigest).toBe((await again.run()).cacheDigest);
  });

  it('gives an image one name however often it is baked, sealed too, and never two images one name', async () => {
    const seal = { goldenKey: GOLDEN_KEY, random: randomBytes };
    const names = async (files: Files) => {
      const { manifest } = await (await bake({ 'one.task': files, one_task: files }, { seal })).run();
      return manifest.tasks.map(({ task_id, image }) => [task_id, image, taskImageName(task_id, image)]);
    };
    const files = task('COPY run.txt /app/');
    const [first, again] = [await names(files), await names(files)];
    expect(again).toEqual(first);
    expect(first[0]?.[1]).toBe(first[1]?.[1]);
    const other = await names({ ...files, 'environment/run.txt': 'another\n' });
    for (const [taskId, image, name] of [...first, ...other]) {
      const { stdout } = await docker('image', 'inspect', '--format', '{{.Id}}', String(name));
      expect(stdout.trim(), taskId).toBe(image);
    }
    const listed = await docker('images', '--quiet', '--filter', 'reference=cvm-evaluator/task-one-task');
    expect(listed.stdout.split('\n').filter(Boolean)).toHaveLength(2);
  });

  it('marks what is live, takes only what was asked, and puts the tools beside', async () => {
    const files = task('');
    const { options, run } = await bake(
      { one: files, three: files, two: { ...files, 'task.toml': '[verifier]\nmode = "live"\n' } },
      {
        only: ['one', 'two'],
        live: ['one'],
        toolchain: async ({ outFile }) => {
          await writeFile(outFile, '');
          return { digest: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' };
        },
      },
    );
    const { manifest } = await run();
    expect(manifest.tasks.map(({ task_id, verifier }) => [task_id, verifier])).toEqual([
      ['one', 'live'],
      ['two', 'live'],
    ]);
    expect((await openCache(options.out)).toolchainPath).toBe(join(options.out, 'toolchain.tar'));
  });

  it('builds on where no registry answers for a task, and asks each once', async () => {
    const toml = '[environment]\ndocker_image = "127.0.0.1:9/org/demo:1"\n';
    const { run } = await bake({
      demo: task('', { 'task.toml': toml }),
      other: task('', { 'task.toml': toml }),
    });
    const { manifest } = await run();
    expect(manifest.tasks.map((entry) => entry.image_source)).toEqual(['built', 'built']);
  });

  it('records an image on a stand-in as such, in whatever stage', async () => {
    const standIn = `cvm-evaluator-test/stand-in:${process.pid}`;
    const context = scratchFolder();
    await writeFiles(context, { Dockerfile: `FROM ${BASE}\nLABEL io.cvm-evaluator.base=stand-in\n` });
    await docker('build', '-q', '-t', standIn, context);
    built.add(standIn);
    const { run } = await bake({
      direct: { ...task(''), 'environment/Dockerfile': `FROM ${standIn}\nCOPY run.txt /app/\n` },
      staged: {
        ...task(''),
        'environment/Dockerfile': `FROM ${standIn} AS build\nFROM ${BASE}\nCOPY --from=build /app /made\n`,
      },
    });
    expect((await run()).manifest.tasks.map((entry) => entry.base)).toEqual(['stand-in', 'stand-in']);
  });

  it.each([
    ['image_declares_volume', 'VOLUME /data'],
    ['image_label_reserved', 'LABEL io.cvm-evaluator.session=x'],
    ['image_build_failed', 'RUN false'],
    ['image_build_failed', 'COPY absent /app/'],
    ['image_build_failed', 'FROM 127.0.0.1:9/absent:1'],
  ])('refuses with %s: %s', async (code, dockerfile) => {
    const { folder, run } = await bake({ demo: task(dockerfile) });
    expect(await rejectionCode(run())).toBe(code);
    expect(await readdir(folder)).toEqual(['plain']);
  });

  it('keeps escape sequences of a build out of what it says', async () => {
    const dockerfile = "RUN printf '\\033[31mred \\033]0;title\\007 end\\n'; false";
    const { run } = await bake({ demo: task(dockerfile) });
    const { message } = (await run().catch((error: Error) => error)) as Error;
    expect(message).toContain('red');
    expect(message.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  });

  it('names every task that cannot be baked', async () => {
    const { run } = await bake({ one: task('RUN false'), two: task(''), three: task('VOLUME /x') });
    const failure = await run().catch((error: Error) => error);
    expect(failure).toMatchObject({ code: 'image_build_failed' });
    expect((failure as Error).message).toMatch(/2 tasks[\s\S]*task one[\s\S]*task three/);
  });

  it('ends a build that outlasts its own limit', async () => {
    const toml = '[environment]\nbuild_timeout_sec = 0.5\n';
    const { run } = await bake({ demo: task('RUN /bin/busybox sleep 600', { 'task.toml': toml }) });
    expect(await rejectionCode(run())).toBe('image_build_failed');
  });

  it('writes into no folder that holds something, and starts nothing for a name it does not know', async () => {
    const full = await bake({ demo: task('') });
    await writeFiles(full.options.out, { x: 'mine' });
    expect(await rejectionCode(full.run())).toBe('bake_output_exists');
    expect(await readFile(join(full.options.out, 'x'), 'utf8')).toBe('mine');

    for (const change of [{ only: ['absent'] }, { live: ['absent'] }]) {
      const { run } = await bake({ demo: task('') }, { ...change, engineSocket: '/absent.sock' });
      expect(await rejectionCode(run())).toBe('task_unknown');
    }
  });

  it('says how to start an engine when none answers', async () => {
    const { run } = await bake({ demo: task('') }, { engineSocket: '/absent.sock' });
    await expect(run()).rejects.toMatchObject({
      code: 'engine_absent',
      message: expect.stringContaining('start'),
    });
  });
});

describe('a sealed bake', () => {
  const CANARY = 'what-only-the-hidden-tests-say';
  const seal = (label: string) => {
    let count = 0;
    return {
      goldenKey: GOLDEN_KEY,
      random: (bytes: number) => labelled(`${label} ${count++}`, bytes),
    };
  };
  const hidden = (more: Files = {}) =>
    task('COPY run.txt /app/', {
      'tests/test.sh': `#!/bin/sh\n# ${CANARY}\n`,
      'solution/solve.sh': `# ${CANARY}\n`,
      ...more,
    });

  async function everyFile(folder: string): Promise<Map<string, Buffer>> {
    const found = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = new Map<string, Buffer>();
    for (const entry of found.filter((one) => one.isFile())) {
      const path = join(entry.parentPath, entry.name);
      files.set(relative(folder, path), await readFile(path));
    }
    return files;
  }

  it('holds tests as ciphertext alone, and opens with the golden key', async () => {
    const { options, run } = await bake({ demo: hidden() }, { seal: seal('one') });
    const { manifest } = await run();
    const files = await everyFile(options.out);
    expect([...files.keys()].sort()).toEqual([
      'demo/environment/Dockerfile',
      'demo/environment/run.txt',
      'demo/instruction.md',
      'demo/task.toml',
      'manifest.json',
      'sealed/demo.sealed',
    ]);
    for (const [path, bytes] of files) expect(bytes.includes(CANARY), path).toBe(false);
    const [entry] = manifest.tasks;
    const cache = await openCache(options.out);
    const key = taskKey(GOLDEN_KEY, manifest.cache_id ?? '', entry?.task_digest ?? '');
    const [script] = await cache.unseal('demo', key);
    expect(script).toMatchObject({ path: 'tests/test.sh', executable: true });
    expect(script?.bytes.toString()).toContain(CANARY);
  });

  it('is the same but for cache_id, salts and nonces', async () => {
    const files = hidden();
    const bakes = [];
    for (const label of ['same', 'same', 'other']) {
      const { options, run } = await bake({ demo: files }, { seal: seal(label) });
      const { cacheDigest, manifest } = await run();
      bakes.push({ cacheDigest, manifest, files: await everyFile(options.out) });
    }
    const [first, second, other] = bakes;
    expect(second).toEqual(first);
    expect(other?.cacheDigest).not.toBe(first?.cacheDigest);
    for (const member of ['task_digest', 'source_digest'] as const)
      expect(other?.manifest.tasks[0]?.[member]).not.toBe(first?.manifest.tasks[0]?.[member]);
    expect(other?.manifest.tasks[0]?.public_digest).toBe(first?.manifest.tasks[0]?.public_digest);
  });

  it('refuses a task that uses the name of the salt', async () => {
    const { run } = await bake({ demo: hidden({ 'tests/.salt': 'x' }) }, { seal: seal('salt') });
    expect(await rejectionCode(run())).toBe('task_unsupported');
  });
});
