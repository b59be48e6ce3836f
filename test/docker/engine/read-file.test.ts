import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import { readSingleFile } from '../../../guest/engine/read-file.ts';
import { readTar } from '../../../guest/engine/tar-read.ts';
import { ENGINE_SOCKET, ensureTestImage } from '../fixtures.ts';
import { createTestContainers, type TestContainers } from './containers.ts';

const engine = connectDocker(ENGINE_SOCKET);
const CAPS = { totalBytes: 1_000_000, entries: 100, depth: 16, timeMs: 60_000 };
let containers: TestContainers;

beforeAll(async () => {
  containers = createTestContainers(engine, await ensureTestImage());
});

afterAll(() => containers.removeAll());

/** A stopped container in which `script` has run. */
async function stoppedAfter(script: string): Promise<string> {
  const id = await containers.start({});
  const { exitCode, stderr } = await containers.run(id, script);
  expect(exitCode, stderr).toBe(0);
  await engine.kill(id);
  return id;
}

describe('readSingleFile', () => {
  it('reads a file, and tells an absent one', async () => {
    const id = await stoppedAfter('mkdir /logs/v; echo 0.5 > /logs/v/reward.txt; : > /logs/v/empty');
    const read = (path: string) => readSingleFile(engine, id, path, 64);
    expect(await read('/logs/v/reward.txt')).toEqual({ kind: 'file', bytes: Buffer.from('0.5\n') });
    expect(await read('/logs/v/empty')).toEqual({ kind: 'file', bytes: Buffer.alloc(0) });
    expect(await read('/logs/v/none')).toEqual({ kind: 'absent' });
    expect(await read('/logs/none/none')).toEqual({ kind: 'absent' });
  });

  it('follows no link, opens no FIFO, and takes no directory for a file', async () => {
    const id = await stoppedAfter(
      'cd /logs; ln -s /etc/passwd link; ln -s /etc way; mkfifo fifo; mkdir dir; ln -s loop loop; ln -s $(head -c 4000 /dev/zero | tr "\\0" a) long; ln -s link/x low',
    );
    for (const path of [
      'link',
      'way/passwd',
      'link/x',
      'loop',
      'loop/x',
      'long',
      'low',
      'fifo',
      'fifo/x',
      'dir',
    ]) {
      expect(await readSingleFile(engine, id, `/logs/${path}`, 4096), path).toMatchObject({
        kind: 'refused',
      });
    }
  });

  it('refuses a sparse file of a tebibyte without reading it', async () => {
    const id = await stoppedAfter('truncate -s 1099511627776 /logs/reward.txt');
    let opened = false;
    const watched = {
      statPath: engine.statPath,
      getArchive: (at: string, path: string) => {
        opened = true;
        return engine.getArchive(at, path);
      },
    };
    expect(await readSingleFile(watched, id, '/logs/reward.txt', 64)).toMatchObject({ kind: 'refused' });
    expect(opened).toBe(false);
  });

  it('takes a file on a tmpfs, which the engine cannot reach, for absent', async () => {
    const id = await containers.start({});
    await containers.run(id, 'echo 1 > /dev/shm/reward.txt');
    expect(await readSingleFile(engine, id, '/dev/shm/reward.txt', 64)).toEqual({ kind: 'absent' });
  });

  it('stops at the cap when a file has grown since it was looked at', async () => {
    const id = await stoppedAfter('truncate -s 1099511627776 /grown');
    const before = {
      getArchive: engine.getArchive,
      statPath: async (at: string, path: string) => {
        const stat = await engine.statPath(at, path);
        return stat && { ...stat, sizeBytes: 1 };
      },
    };
    expect(await readSingleFile(before, id, '/grown', 64)).toMatchObject({ kind: 'refused' });
  });

  it('never gives more than the cap of a file that is being written', async () => {
    const id = await containers.start({});
    await containers.run(id, 'yes > /grows & sleep 0.1');
    for (const maxBytes of [10, 2 ** 20, 2 ** 24]) {
      const result = await readSingleFile(engine, id, '/grows', maxBytes);
      if (result.kind === 'file') expect(result.bytes.length).toBeLessThanOrEqual(maxBytes);
      else expect(result.kind).toBe('refused');
    }
  });

  it('blames nobody in the container when that is gone', async () => {
    const id = await containers.create({});
    await engine.remove(id);
    const gone = readSingleFile(engine, id, '/x', 64);
    await expect(gone).rejects.toMatchObject({ code: 'engine_not_found', fault: 'infra' });
  });
});

describe("the engine's archive of a directory", () => {
  const readDirectory = async (id: string) => readTar(await engine.getArchive(id, '/logs/agent'), CAPS);

  it('comes back with its files', async () => {
    const id = await stoppedAfter('mkdir -p /logs/agent/a; echo 1 > /logs/agent/a/x; echo 2 > /logs/agent/é');
    const files = await readDirectory(id);
    expect(files.map(({ path, bytes }) => [path, bytes.toString()]).sort()).toEqual([
      ['agent/a/x', '1\n'],
      ['agent/é', '2\n'],
    ]);
  });

  it.each([
    ['a sparse file of a tebibyte', 'truncate -s 1099511627776 big', /more than 1000000 bytes/],
    [
      'ten thousand files',
      'i=0; while [ $i -lt 10000 ]; do : > f$i; i=$((i+1)); done',
      /more than 100 entries/,
    ],
    [
      'directories 300 deep',
      'i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done; : > x',
      /deeper than 16/,
    ],
    ['a symbolic link', 'ln -s / link', /neither/],
    ['a hard link', ': > a; ln a b', /neither/],
    ['a FIFO', 'mkfifo f', /neither/],
    ['a setuid file', ': > f; chmod 4755 f', /setuid/],
    ['a newline in a name', 'touch "$(printf "a\\nb")"', /control/],
    ['an escape sequence in a name', 'touch "$(printf "a\\033[2J")"', /control/],
    ['a name that is not UTF-8', 'touch "$(printf "\\377")"', /UTF-8/],
    ['names equal after case folding', ': > a; : > A', /comes twice/],
  ])('is refused for %s', async (_, script, reason) => {
    const id = await stoppedAfter(`mkdir /logs/agent; cd /logs/agent; ${script}`);
    await expect(readDirectory(id)).rejects.toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(reason),
    });
  });
});
