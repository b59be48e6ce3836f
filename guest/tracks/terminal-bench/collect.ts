import type { Engine } from '../../engine/port.ts';
import { readSingleFile } from '../../engine/read-file.ts';
import type { CachedTask } from '../../tasks/types.ts';
import { MAX_CTRF_BYTES, parseCtrf } from './ctrf.ts';
import { parseReward } from './reward.ts';

const LOGS = '/logs/verifier';
const MAX_REWARD_BYTES = 4096;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_FRONT_BYTES = 64 * 1024;

/** What a dead container says of its verification. */
export interface Collected {
  reward: number;
  /** The manifest's proof that tests ran is there (spec/03, Reward). */
  proof: 'shown' | 'missing';
  /** Passed tests of the report that is the proof; null without one. */
  passed: number | null;
  /** Requests that the verifier front does not serve; what an agent left may claim some, so a control decides. */
  unserved: readonly string[];
}

async function read(
  engine: Engine,
  containerId: string,
  name: string,
  maxBytes: number,
): Promise<Buffer | null> {
  const found = await readSingleFile(engine, containerId, `${LOGS}/${name}`, maxBytes);
  // A link, a directory or a flood is not a reward file, but it is not "no file" either: it reads as garbage.
  if (found.kind === 'absent') return null;
  return found.kind === 'file' ? found.bytes : Buffer.alloc(0);
}

/** Reads reward, proof and refused requests from a stopped container. @throws engine_* only. */
export async function collect(
  engine: Engine,
  containerId: string,
  evidence: CachedTask['evidence'],
): Promise<Collected> {
  const txt = await read(engine, containerId, 'reward.txt', MAX_REWARD_BYTES);
  const json = await read(engine, containerId, 'reward.json', MAX_REWARD_BYTES);
  const front = await read(engine, containerId, '.evaluator-front', MAX_FRONT_BYTES);
  const unserved = front ? front.toString('latin1').split('\n').filter(Boolean) : [];
  const reward = parseReward({ txt, json });
  if (evidence.kind === 'none')
    return { reward, proof: txt || json ? 'shown' : 'missing', passed: null, unserved };

  const bytes = await read(engine, containerId, 'ctrf.json', MAX_CTRF_BYTES);
  const ctrf = bytes && parseCtrf(bytes);
  if (!ctrf) return { reward: 0, proof: 'missing', passed: null, unserved };
  const enough = evidence.passed === null || ctrf.passed >= evidence.passed;
  return { reward: enough || reward < 1 ? reward : 0, proof: 'shown', passed: ctrf.passed, unserved };
}

/** What test.sh printed, for a local run's logs; null when it is absent, too large or cannot be read. */
export async function readTestOutput(engine: Engine, containerId: string): Promise<Buffer | null> {
  return read(engine, containerId, 'test-output.txt', MAX_OUTPUT_BYTES).catch(() => null);
}
