import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ChallengeProcess, spawnChallenge } from '../../support/challenge-process.ts';
import { guestOf, livePlatform, sealedConfig } from '../../support/key-challenge.ts';
import { askForKeys, type Guest, openSession } from '../../support/key-client.ts';

const MIB = 1024 * 1024;
let challenge: ChallengeProcess;
let guest: Guest;
beforeAll(async () => {
  const platform = await livePlatform();
  challenge = await spawnChallenge(await sealedConfig(platform));
  guest = await guestOf(challenge, platform);
});
afterAll(() => challenge.kill('SIGKILL'));

function peakBytes(): number {
  const status = readFileSync(`/proc/${challenge.child.pid}/status`, 'latin1');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

/** Silent, talking TLS, or sending a body without end: whatever holds a place longest. */
function hostile(port: number, localAddress: string, kind: number): Socket {
  if (kind === 0) return connect({ host: '127.0.0.1', port, localAddress });
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, localAddress } as never);
  socket.once('secureConnect', () => {
    if (kind === 1) socket.write('POST /');
    else
      socket.write(`POST /key-release/v1/runs/run HTTP/1.1\r\nHost: x\r\nContent-Length: ${4 * MIB}\r\n\r\n`);
  });
  return socket;
}

it('1000 connections at once hold little memory, and an honest guest is served meanwhile', async () => {
  const { port } = new URL(guest.plan.key_release?.url ?? '');
  const warm = await askForKeys(guest);
  expect(warm.status).toBe(200);
  const before = peakBytes();
  const crowd = Array.from({ length: 1000 }, (_, i) =>
    hostile(Number(port), `127.0.1.${1 + (i % 40)}`, i % 3).on('error', () => undefined),
  );
  const settled = crowd.map((socket) =>
    Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined),
  );
  await Promise.all(settled);
  expect(crowd.filter(({ destroyed }) => !destroyed).length).toBeGreaterThan(100);
  const served = await askForKeys(guest, {}, { localAddress: '127.0.0.2' });
  expect(served.status).toBe(200);
  expect(peakBytes() - before).toBeLessThan(150 * MIB);
  for (const socket of crowd) socket.destroy();
  const after = await openSession(guest.plan.key_release?.url ?? '', guest.ca, guest.pair);
  after.socket.destroy();
});
