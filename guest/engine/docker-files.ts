import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { isEvaluatorError } from '../errors.ts';
import { DEADLINES_MS } from './deadline.ts';
import type { Dial } from './dial.ts';
import { container } from './docker-paths.ts';
import { engineWords } from './engine-error.ts';
import { parsePathStat, unresolvable } from './path-stat.ts';
import type { PathStat } from './port.ts';

/** The engine's words, with the system's own at their end, for a link that leads nowhere it can follow. */
const UNRESOLVABLE =
  /too many links in |: (not a directory|file name too long|too many levels of symbolic links)$/;

/** Unpacks a tar at `path`; a file never takes a directory's place. */
export async function putArchive(
  dial: Dial,
  id: string,
  path: string,
  tar: Readable | Buffer,
): Promise<void> {
  await dial.json({
    subject: { call: 'putArchive', of: `${id}:${path}`, about: 'files' },
    deadlineMs: DEADLINES_MS.putArchive,
    method: 'PUT',
    path: `${container(id)}/archive`,
    query: { path, noOverwriteDirNonDir: '1' },
    upload: tar,
  });
}

/** A tar of what is at `path`. */
export async function getArchive(dial: Dial, id: string, path: string): Promise<Readable> {
  return request(dial, 'getArchive', id, path);
}

/**
 * The lstat of `path`; null when it, or the container, is not there. The engine resolves a link to answer, and
 * fails with status 500 for one that it cannot: what an agent can bring about is told apart from a fault of
 * the engine, and comes back as a link.
 */
export async function statPath(dial: Dial, id: string, path: string): Promise<PathStat | null> {
  let answer: IncomingMessage;
  try {
    answer = await request(dial, 'statPath', id, path);
  } catch (error) {
    if (isEvaluatorError(error, 'engine_not_found')) return null;
    if (isEvaluatorError(error, 'engine_error') && (await isUnresolvable(dial, id, path)))
      return unresolvable(path);
    throw error;
  }
  answer.resume();
  return parsePathStat(answer.headers['x-docker-container-path-stat']);
}

/** A HEAD answer has no words: the same question, asked for the content, has. */
async function isUnresolvable(dial: Dial, id: string, path: string): Promise<boolean> {
  try {
    const answer = await request(dial, 'getArchive', id, path);
    answer.destroy();
    return false;
  } catch (error) {
    return isEvaluatorError(error, 'engine_error') && UNRESOLVABLE.test(engineWords(error));
  }
}

function request(
  dial: Dial,
  call: 'statPath' | 'getArchive',
  id: string,
  path: string,
): Promise<IncomingMessage> {
  return dial.stream({
    subject: { call, of: `${id}:${path}`, about: 'files' },
    deadlineMs: DEADLINES_MS[call],
    method: call === 'statPath' ? 'HEAD' : 'GET',
    path: `${container(id)}/archive`,
    query: { path },
  });
}
