import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyEngineFloor } from '../../guest/stages/engine-floor.ts';
import { parseMechanism } from '../../guest/wire/mechanism.ts';
import { openDesk } from './desk.ts';
import { startContainer } from './guest-container.ts';
import { buildGuestImage, findGuestImage } from './guest-image.ts';
import type { GuestPlace } from './guest-place.ts';
import type { LoadedCache } from './inputs.ts';
import type { GuestImageChoice } from './options.ts';
import type { Running } from './process.ts';

export interface ImagePlaceOptions {
  choice: GuestImageChoice;
  engineSocket: string;
  loaded: LoadedCache;
  work: string;
  /** Handed what must live as long as the guest. */
  onPart: (running: Running) => void;
  onLog: (process: string, line: string) => void;
  onProgress: (message: string) => void;
}

/**
 * The guest as its image, in a container on a bridge of this run. The challenge listens on the bridge's gateway.
 * @throws build_*, cache_not_sealed, usage, engine_*.
 */
export async function imagePlace(options: ImagePlaceOptions): Promise<GuestPlace> {
  const { choice, engineSocket, loaded, work, onPart, onLog, onProgress } = options;
  const desk = await openDesk(engineSocket, onPart, (line) => onLog('reaper', line));
  const cache = { directory: loaded.cache.directory, origin: loaded.origin };
  const image =
    choice.kind === 'named'
      ? await findGuestImage(desk, choice.ref)
      : await buildGuestImage(desk, cache, work, onProgress);
  const mechanism = join(work, 'mechanism.yaml');
  writeFileSync(mechanism, image.mechanism);
  verifyEngineFloor(await desk.engine.info(), parseMechanism(image.mechanism).mechanism.floors);
  onProgress(
    `the guest is ${image.ref}, built of ${image.revision.slice(0, 12)}; its bridge's gateway is ${desk.gateway}`,
  );
  return {
    imageRef: image.ref,
    gitRevision: image.revision,
    mechanism,
    challengeHost: desk.gateway,
    start: (start) => {
      // The container's root is another user than ours where we are not root; our folder keeps others out.
      chmodSync(start.guestAgentSocket, 0o666);
      return startContainer(desk, image.id, start);
    },
  };
}
