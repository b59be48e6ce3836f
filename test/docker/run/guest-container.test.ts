import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { connectDeskEngine } from '../../../scripts/run/desk-engine.ts';
import { startContainer } from '../../../scripts/run/guest-container.ts';
import { ENGINE_SOCKET, ensureTestImage, TEST_LABEL } from '../fixtures.ts';

/** Says which signal ended it, as a guest does. */
const SCRIPT = `trap "echo SIGINT; exit 130" INT
trap "echo SIGTERM; exit 143" TERM
while :; do sleep 0.1; done`;

const compose = JSON.stringify({
  services: {
    guest: {
      image: `localhost/guest@sha256:${'a'.repeat(64)}`,
      restart: 'no',
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: [],
      command: ['sh', '-c', SCRIPT],
      environment: [],
      volumes: [],
    },
  },
});

it.concurrent.each([
  [['SIGINT'], 'SIGINT', 130],
  [[], 'SIGTERM', 143],
] as const)('a container that is stopped by %j hears of it: %s', async (given, heard, exitCode) => {
  const image = await ensureTestImage();
  const engine = connectDeskEngine(ENGINE_SOCKET);
  const id = randomBytes(8).toString('hex');
  const desk = { engine, engineSocket: ENGINE_SOCKET, id, labels: { [TEST_LABEL]: id }, network: 'none' };
  const said: string[] = [];
  const guest = await startContainer(desk, image, {
    appCompose: Buffer.from(JSON.stringify({ docker_compose_file: compose })),
    planRoot: { publicKey: '', challengeId: '' },
    guestAgentSocket: '/absent',
    env: {},
    onStdout: (line) => said.push(line),
    onStderr: (line) => said.push(line),
  });
  onTestFinished(async () => {
    for (const object of await engine.listOwned(TEST_LABEL))
      if (object.labels[TEST_LABEL] === id) await engine.remove(object.id);
  });
  await guest.stop(...given);
  expect(await guest.exited).toBe(exitCode);
  expect(said).toEqual([heard]);
});
