import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderAppCompose } from '../compose/app-compose.ts';
import { newSession } from '../guest/trial/labels.ts';
import { GUEST_BASE, LOCKED_NODE, makeGuestBase } from '../scripts/images/base.ts';
import { buildImage, loadStored } from '../scripts/images/build.ts';
import { removeImage } from '../scripts/images/buildah.ts';
import { readImage } from '../scripts/images/compare.ts';
import { connectDeskEngine, DESK_LABEL, DESK_OWNER_LABEL, deskImage } from '../scripts/run/desk-engine.ts';
import { startContainer } from '../scripts/run/guest-container.ts';
import { reap } from '../scripts/run/reap.ts';
import { startGuestAgent } from '../simulator/agent-api.ts';
import { PLAIN_TASK } from '../test/support/plain-task.ts';
import { writeSealedCache } from '../test/support/sealed-cache.ts';
import { testPlatform } from '../test/support/valid-result.ts';
import { ROOT } from './evaluator.ts';
import { spread } from './statistics.ts';

/** The eval image with one small task: its size beyond the base, and its container's time to the first stage. */
const STARTS = 20;
const ENGINE = '/var/run/docker.sock';
const ID = `bench-${process.pid}`;

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
const engine = connectDeskEngine(ENGINE);
const labels = { [DESK_LABEL]: ID, [DESK_OWNER_LABEL]: newSession(null).owner };
try {
  await makeGuestBase(LOCKED_NODE, () => undefined);
  await writeSealedCache(join(folder, 'cache'), { trivial: PLAIN_TASK });
  const source = { builder: 'buildah', role: 'eval', repository: ROOT, base: GUEST_BASE } as const;
  const request = { ...source, cache: join(folder, 'cache'), onProgress: () => undefined };
  const built = await buildImage(request, join(folder, 'build'));
  const entries = [...(await readImage(built))].filter(([, entry]) => entry.startsWith('file '));
  const files = entries.filter(([path]) => path.startsWith('/opt/cvm-evaluator/')).length;
  const [base = 0, ...beyond] = built.layers.map(({ size }) => size / 1e6);
  const sum = beyond.reduce((a, b) => a + b, 0);
  console.log(
    `eval image: ${sum.toFixed(1)} MB compressed beyond a base of ${base.toFixed(1)} MB; ` +
      `${files} files in /opt/cvm-evaluator, ${built.packages.length} npm packages`,
  );
  await loadStored(built.name ?? '', deskImage(ID), ENGINE);
  await removeImage(built.name ?? '');
  const image = await engine.image(deskImage(ID));
  await engine.openBridge(ID, labels);
  const guestAgentSocket = join(folder, 'dstack.sock');
  const agent = await startGuestAgent({
    socketPath: guestAgentSocket,
    platform: await testPlatform(),
    faults: [],
  });
  const planRoot = { publicKey: '0'.repeat(64), challengeId: 'bench' };
  const appCompose = renderAppCompose({
    imageRef: `localhost/eval@${built.digest}`,
    planRoot,
    envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN'],
  });
  const samples: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    let first = Number.NaN;
    const desk = { engine, engineSocket: ENGINE, id: `${ID}-${i}`, labels, network: ID };
    const begun = performance.now();
    const guest = await startContainer(desk, image?.id ?? '', {
      appCompose,
      planRoot,
      guestAgentSocket,
      // No plan: it is refused right after the first stage has begun.
      env: { EVAL_PLAN: 'e30', EVAL_RUN_TOKEN: 'token' },
      onStdout: () => undefined,
      onStderr: (line) => {
        if (line.includes('"mark":"begin"')) first = performance.now();
      },
    });
    await guest.exited;
    samples.push(first - begun);
  }
  console.log(
    `eval container, created and started, to the first stage marker, ${STARTS} starts: p50 / p95 / max ms ${spread(samples)}`,
  );
  await agent.close();
} finally {
  await reap(engine, ID);
  rmSync(folder, { recursive: true, force: true });
}
