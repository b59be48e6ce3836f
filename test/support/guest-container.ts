import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { LABEL } from '../../guest/trial/labels.ts';
import { removeImage } from '../../scripts/images/buildah.ts';
import { DESK_LABEL } from '../../scripts/run/desk-engine.ts';
import { childrenOf, type StartedEvaluator } from './evaluator.ts';

const run = promisify(execFile);

/** What the tests read of an inspect document. */
export interface Inspected {
  Id: string;
  Image: string;
  RepoTags: string[];
  State: { Pid: number };
  HostConfig: Record<string, unknown>;
  Config: { Cmd: string[]; Env: string[]; Labels: Record<string, string> };
  Mounts: { Type: string; Destination: string; RW: boolean }[];
}

/** A guest's container and its trials, looked at while they ran. */
export interface Seen {
  guest: Inspected;
  /** /proc/<pid>/status of its process. */
  status: string;
  trials: Inspected[];
  desk: string;
}

/** Docker's own command line: another witness than the code that is tested. */
export async function docker(...args: string[]): Promise<string> {
  return (await run('docker', args)).stdout.trim();
}

export async function inspect(id: string): Promise<Inspected> {
  return JSON.parse(await docker('inspect', id))[0];
}

const linesOf = (text: string) => text.split('\n').filter(Boolean);

/** The guest's container of a run, and the desk that it is at. */
export async function guestOf({ child }: StartedEvaluator): Promise<{ guest: string; desk: string }> {
  const reaper = childrenOf(child.pid ?? 0).find(({ command }) => command.includes('reaper.ts'));
  const desk = reaper?.command.split('--desk ')[1] ?? '';
  const guest = await docker('ps', '--quiet', '--no-trunc', '--filter', `label=${DESK_LABEL}=${desk}`);
  return { guest, desk };
}

/** Everything that a guest has on the engine. */
export async function siblingsOf(guest: string): Promise<string[]> {
  const filter = ['--filter', `label=${LABEL.owner}=container:${guest}`];
  const lists = await Promise.all([
    docker('ps', '--all', '--quiet', ...filter),
    docker('volume', 'ls', '--quiet', ...filter),
    docker('network', 'ls', '--quiet', ...filter),
  ]);
  return lists.flatMap(linesOf);
}

/** A guest's trials, once so many run. */
export async function trialsOf(guest: string, reps: number): Promise<string[]> {
  const labels = [`${LABEL.owner}=container:${guest}`, `${LABEL.role}=trial`];
  const filter = labels.flatMap((label) => ['--filter', `label=${label}`]);
  for (;;) {
    const ids = linesOf(await docker('ps', '--quiet', '--no-trunc', ...filter));
    if (ids.length >= reps) return ids;
    await sleep(50);
  }
}

export async function expectNothingLeft(guest: string, desk: string): Promise<void> {
  const filter = ['--filter', `label=${DESK_LABEL}=${desk}`];
  expect(await docker('ps', '--all', '--quiet', ...filter)).toBe('');
  expect(await docker('network', 'ls', '--quiet', ...filter)).toBe('');
  expect(await siblingsOf(guest)).toEqual([]);
}

/** The name in buildah's store of an image that `run --image` has built, with or without a desk's layer. */
export const storedName = (tag: string, role: 'eval' | 'eval-desk') =>
  `localhost/${tag.replace(/\/eval(?:-desk)?:/, `/${role}:`)}`;

/** Forgets what a run has built, in both stores; nothing but the two names of it. */
export async function removeImages(tag: string): Promise<void> {
  if (!/^cvm-evaluator\/eval(?:-desk)?:[0-9a-f]{12}-[0-9a-f]{12}$/.test(tag)) return;
  for (const role of ['eval-desk', 'eval'] as const) {
    const name = storedName(tag, role);
    await removeImage(name).catch(() => undefined);
    for (const known of [name, name.slice('localhost/'.length)])
      await docker('image', 'rm', known).catch(() => undefined);
  }
}
