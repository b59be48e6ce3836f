import { accessSync, constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';

function refuse(verb: string, message: string): never {
  throw new EvaluatorError('usage', `${verb}: ${message}`);
}

/** A path that an option names, made absolute. @throws usage when nothing is there. */
export function existingPath(verb: string, option: string, path: string): string {
  if (!existsSync(path)) refuse(verb, `--${option} ${path}: no such file or folder`);
  return resolve(path);
}

/** An empty folder for what a verb leaves; made here, so that it is not refused when all is over. @throws usage. */
export function outputFolder(verb: string, path: string): string {
  let entries: string[] = [];
  try {
    mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK);
    entries = readdirSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    refuse(verb, `--out ${path}: not a folder that can be written (${code}); name another`);
  }
  if (entries.length > 0) refuse(verb, `--out ${path}: not empty; name a new folder`);
  return resolve(path);
}

/**
 * What an option names can be written when all is done: said now, and nothing is made yet.
 * @throws usage when its folder is none, or closed; when a folder lies where a file goes, or one that is not empty
 * where a new one goes.
 */
export function verifyWritable(
  verb: string,
  option: string,
  path: string,
  kind: 'file' | 'folder' | 'new folder',
) {
  const full = resolve(path);
  let folder = kind === 'file' ? dirname(full) : full;
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
    const entries = readdirSync(folder);
    if (kind === 'new folder' && folder === full && entries.length > 0)
      refuse(verb, `--${option} ${path}: not empty; name a new folder`);
  } catch (error) {
    if (error instanceof EvaluatorError) throw error;
    refuse(
      verb,
      `--${option} ${path}: cannot be written (${folder}: ${(error as NodeJS.ErrnoException).code})`,
    );
  }
  if (kind === 'file' && statSync(full, { throwIfNoEntry: false })?.isDirectory())
    refuse(verb, `--${option} ${path}: a folder; name a file`);
}

/** A time as it stands in the name of a folder: 20260301T120000Z. */
export function timeName(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
}
