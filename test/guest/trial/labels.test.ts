import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isOwnerAlive, LABEL, labelsOf, newSession } from '../../../guest/trial/labels.ts';

const neverAsked = async () => expect.unreachable('the engine was asked');

describe('newSession', () => {
  it('differs each time, with one owner', () => {
    const [a, b] = [newSession(null), newSession(null)];
    expect(a.id).not.toBe(b.id);
    expect(a.owner).toBe(b.owner);
    expect(a.owner).toMatch(new RegExp(`^process:[0-9a-f-]{36}:${process.pid}:[0-9]+:[0-9]+$`));
    expect(newSession('c'.repeat(64)).owner).toBe(`container:${'c'.repeat(64)}`);
  });

  it('labels say run, rep, role, session and owner', () => {
    const session = newSession(null);
    expect(labelsOf(session, 'run-1', 'trial', 'task#0')).toEqual({
      [LABEL.session]: session.id,
      [LABEL.owner]: session.owner,
      [LABEL.run]: 'run-1',
      [LABEL.role]: 'trial',
      [LABEL.rep]: 'task#0',
    });
  });
});

describe('isOwnerAlive', () => {
  const own = newSession(null).owner;
  const [kind, boot, pid, start, namespace] = own.split(':');

  it('is true for a process that runs', async () => {
    expect(await isOwnerAlive(own, neverAsked)).toBe(true);
  });

  it.each([
    ['of another boot', `${kind}:00000000-0000-0000-0000-000000000000:${pid}:${start}:${namespace}`],
    [
      'of another boot and another pid namespace',
      `${kind}:00000000-0000-0000-0000-000000000000:${pid}:${start}:1`,
    ],
    ['whose pid was used again', `${kind}:${boot}:${pid}:${Number(start) + 1}:${namespace}`],
    ['whose pid is free', `${kind}:${boot}:999999999:${start}:${namespace}`],
    ['without a pid namespace', `${kind}:${boot}:${pid}:${start}`],
    ['without a start time', `${kind}:${boot}:${pid}`],
    ['without a pid', `${kind}:${boot}`],
    ['that cannot be read', 'nonsense'],
    ['that is empty', ''],
  ])('is false for one %s', async (_, owner) => {
    expect(await isOwnerAlive(owner, neverAsked)).toBe(false);
  });

  it('is true for a process of another pid namespace, of which nothing can be seen from here', async () => {
    expect(await isOwnerAlive(`${kind}:${boot}:999999999:${start}:1`, neverAsked)).toBe(true);
  });

  it('is false for a process that has ended and that nobody waits for', async () => {
    // The shell starts a child and becomes a program that never waits for it.
    const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const [line] = await once(parent.stdout, 'data');
      const child = Number(String(line));
      const stat = () => readFileSync(`/proc/${child}/stat`, 'utf8').split(' ');
      const owner = `${kind}:${boot}:${child}:${stat()[21]}:${namespace}`;
      expect(await isOwnerAlive(owner, neverAsked)).toBe(true);
      while (stat()[2] !== 'Z') await new Promise((resolve) => setTimeout(resolve, 20));
      expect(await isOwnerAlive(owner, neverAsked)).toBe(false);
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it.each([true, false])('asks the engine about a container: %s', async (running) => {
    const asked: string[] = [];
    const answer = await isOwnerAlive('container:abc', async (id) => {
      asked.push(id);
      return running;
    });
    expect([answer, asked]).toEqual([running, ['abc']]);
  });
});
