import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orRefuse, outputOf } from './program.ts';

/** A commit, and when it was made. */
export interface Revision {
  commit: string;
  /** Seconds since the epoch: the time of everything in an image of this commit. */
  epoch: number;
}

const git = (repository: string, ...args: string[]) => outputOf('git', args, { cwd: repository, env: {} });

/** The commit that is checked out. @throws build_source_invalid, build_unavailable. */
export async function readRevision(repository: string): Promise<Revision> {
  const shown = await orRefuse(
    git(repository, 'show', '--no-patch', '--format=%H %ct', 'HEAD'),
    'build_source_invalid',
    `${repository} is no git checkout with a commit: an image is built from one`,
  );
  const [commit = '', epoch = ''] = shown.trim().split(' ');
  return { commit, epoch: Number(epoch) };
}

/** Whether tracked files differ from the commit; such changes are not built. */
export async function hasUncommittedChanges(repository: string): Promise<boolean> {
  return (await git(repository, 'status', '--porcelain', '--untracked-files=no')) !== '';
}

/** Clones a repository and checks a commit out, whatever its branches have become since. @throws build_failed. */
export async function cloneRepository(repository: string, commit: string, folder: string): Promise<void> {
  await git(repository, 'clone', '--quiet', '--no-hardlinks', '--no-checkout', '.', folder);
  await git(folder, 'checkout', '--quiet', '--detach', commit);
}

/**
 * Writes the files of a commit, and below them the production packages of its lockfile, installed without
 * running any script of theirs.
 * @throws build_failed, build_unavailable.
 */
export async function exportSource(repository: string, { commit }: Revision, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const archive = `${folder}.tar`;
  await git(repository, 'archive', '--format=tar', `--output=${archive}`, commit);
  await outputOf('tar', ['--extract', '--file', archive], { cwd: folder, env: {} });
  const flags = [
    '--omit=dev',
    '--omit=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  await outputOf('npm', ['ci', '--prefer-offline', ...flags], {
    cwd: folder,
    env: { npm_config_cache: npmCache() },
  });
}

/** npm's own cache, kept when npm itself started us with another one. */
function npmCache(): string {
  return process.env.npm_config_cache ?? join(process.env.HOME ?? '/root', '.npm');
}
