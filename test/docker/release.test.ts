import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueServerIdentity } from '../../challenge/tls.ts';
import { allowlistSchema } from '../../guest/wire/measurement.ts';
import { GUEST_BASE, LOCKED_NODE, makeGuestBase } from '../../scripts/images/base.ts';
import { readLayout } from '../../scripts/images/buildkit.ts';
import { scratchFolder } from '../support/scratch.ts';

const run = promisify(execFile);
const scratch = scratchFolder();
const work = join(scratch, 'work');
const script = (name: string) => join(import.meta.dirname, '../../scripts/release', name);

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

async function release(name: string, args: readonly string[], env: Record<string, string>): Promise<Ended> {
  try {
    const { stdout, stderr } = await run(script(name), args, { env: { ...process.env, ...env } });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as Ended;
  }
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A registry of Debian's, on the loopback, under a CA of its own. */
async function startRegistry(): Promise<{ process: ChildProcess; host: string; certs: string }> {
  const port = await freePort();
  const certs = join(scratch, 'certs');
  const { caPem, certificatePem, keyPem } = await issueServerIdentity('127.0.0.1', Date.now());
  await mkdir(certs, { recursive: true });
  await writeFile(join(certs, 'ca.crt'), caPem);
  await writeFile(join(scratch, 'server.pem'), certificatePem + caPem);
  await writeFile(join(scratch, 'server.key'), keyPem, { mode: 0o600 });
  const config = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(scratch, 'registry') } },
    http: {
      addr: `127.0.0.1:${port}`,
      secret: randomBytes(16).toString('hex'),
      tls: { certificate: join(scratch, 'server.pem'), key: join(scratch, 'server.key') },
    },
  };
  await writeFile(join(scratch, 'registry.yml'), JSON.stringify(config));
  const child = spawn('docker-registry', ['serve', join(scratch, 'registry.yml')], { stdio: 'ignore' });
  const answers = () =>
    new Promise<boolean>((resolve) => {
      get(`https://127.0.0.1:${port}/v2/`, { ca: caPem }, (reply) => {
        reply.resume();
        resolve(reply.statusCode === 200);
      }).on('error', () => resolve(false));
    });
  while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 50));
  return { process: child, host: `127.0.0.1:${port}`, certs };
}

let registry: Awaited<ReturnType<typeof startRegistry>>;
let built: Ended;

beforeAll(async () => {
  await makeGuestBase(LOCKED_NODE, () => {});
  registry = await startRegistry();
  built = await release('build', ['review', join(work, 'review')], {
    BASE_IMAGE: GUEST_BASE,
    BUILDER: 'buildah',
  });
}, 600_000);
afterAll(() => {
  registry.process.kill();
});

describe('release/build and release/push', () => {
  it('push the bytes that two equal builds made, and say which', async () => {
    expect(built.code, built.stderr).toBe(0);
    const image = JSON.parse(built.stdout);
    expect(image).toMatchObject({ image: 'review', twice: true });
    expect((await readLayout(join(work, 'review/layout'))).digest).toBe(image.digest);
    const env = { REGISTRY_CERTS: registry.certs };
    const pushed = await release('push', [join(work, 'review'), `${registry.host}/cvm-review`, 'v1'], env);
    expect(pushed.stderr).toBe('');
    expect(pushed).toMatchObject({ code: 0, stdout: `digest=${image.digest}\n` });
  });

  it('refuse what is not the image that was built', async () => {
    const image = JSON.parse(await readFile(join(work, 'review/image.json'), 'utf8'));
    const other = join(work, 'other');
    await mkdir(other, { recursive: true });
    await run('cp', ['-r', join(work, 'review/layout'), other]);
    const digest = `sha256:${'0'.repeat(64)}`;
    await writeFile(join(other, 'image.json'), JSON.stringify({ ...image, digest }));
    const env = { REGISTRY_CERTS: registry.certs };
    const pushed = await release('push', [other, `${registry.host}/cvm-review`, 'v2'], env);
    expect(pushed).toMatchObject({ code: 3, stdout: '' });
  });

  it('do not trust a registry under another CA', async () => {
    const pushed = await release('push', [join(work, 'review'), `${registry.host}/cvm-review`, 'v3'], {});
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toContain('certificate');
  });

  it('refuse a base that is not named by digest', async () => {
    const env = { BASE_IMAGE: 'node:24-slim', BUILDER: 'buildkit' };
    const refused = await release('build', ['review', join(work, 'unpinned')], env);
    expect(refused.stderr).toContain('build_base_unpinned');
  });
});

describe('release/fetch-cache', () => {
  it('unpacks the file whose hash was given, and no other', async () => {
    await mkdir(join(scratch, 'cache/sealed'), { recursive: true });
    await writeFile(join(scratch, 'cache/manifest.json'), '{}');
    const file = join(scratch, 'cache.tar.gz');
    await run('tar', ['-czf', file, '-C', join(scratch, 'cache'), '.']);
    const hash = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    const wrong = await release('fetch-cache', [`file://${file}`, '0'.repeat(64), join(scratch, 'no')], {});
    expect(wrong.code).toBe(3);
    await expect(readFile(join(scratch, 'no/manifest.json'))).rejects.toThrow();
    const right = await release('fetch-cache', [`file://${file}`, hash, join(scratch, 'yes')], {});
    expect(right.code, right.stderr).toBe(0);
    expect(await readFile(join(scratch, 'yes/manifest.json'), 'utf8')).toBe('{}');
  });
});

describe('what is published', () => {
  const env = {
    PLAN_ROOT: 'ab'.repeat(32),
    CHALLENGE_ID: 'demo',
    KEY_PROVIDER_ID: 'aabb',
    REVISION: 'c'.repeat(40),
    AGENT_ENV: '',
  };

  it.each(['eval', 'review'])('release/measurements makes the allowlist of the %s image', async (role) => {
    const file = join(scratch, `measurements-${role}.json`);
    const image = `registry.example/cvm-${role}@sha256:${'d'.repeat(64)}`;
    const { code, stderr } = await release('measurements', [role, image, file], env);
    expect(code, stderr).toBe(0);
    const { entries } = allowlistSchema.parse(JSON.parse(await readFile(file, 'utf8')));
    expect(entries[0]).toMatchObject({ image_ref: image, git_revision: env.REVISION });
  });

  it('release/sbom lists the production packages of the lockfile', async () => {
    const file = join(scratch, 'sbom.cdx.json');
    expect((await release('sbom', [file], {})).code).toBe(0);
    const { bomFormat, components } = JSON.parse(await readFile(file, 'utf8'));
    const names = components.map(({ name }: { name: string }) => name);
    expect(bomFormat).toBe('CycloneDX');
    expect(names).toContain('dockerode');
    expect(names).not.toContain('vitest');
  });

  it('release/publish puts files on the release under their names', async () => {
    // The program that talks to the release's host is the one part that is not real here.
    const bin = join(scratch, 'bin');
    await mkdir(bin, { recursive: true });
    await writeFile(
      join(bin, 'gh'),
      '#!/bin/sh\necho "$@" | sed "s#/[^ ]*/##g" >>"$CALLS"\n[ "$2" != view ]\n',
    );
    await chmod(join(bin, 'gh'), 0o755);
    await writeFile(join(scratch, 'list.json'), '{}');
    await writeFile(join(scratch, 'bundle'), '{}');
    const calls = join(scratch, 'calls');
    const { code, stderr } = await release(
      'publish',
      ['v1', join(scratch, 'list.json'), `${join(scratch, 'bundle')}#list.sigstore.json`],
      { PATH: `${bin}:${process.env.PATH}`, CALLS: calls },
    );
    expect(code, stderr).toBe(0);
    expect((await readFile(calls, 'utf8')).split('\n')).toEqual([
      'release view v1',
      'release create v1 --verify-tag --title v1 --notes See CHANGELOG.md.',
      'release upload v1 list.json list.sigstore.json',
      '',
    ]);
  });
});
