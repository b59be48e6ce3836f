import { randomInt } from 'node:crypto';
import { engineWords } from '../engine/engine-error.ts';
import type { Engine } from '../engine/port.ts';
import { isEvaluatorError } from '../errors.ts';

const SUBNETS_TRIED = 8;

/**
 * A /29 that no network of this engine has, of the range for benchmarks (RFC 2544): the engine's own pools hold
 * some thirty networks. Its first address is the bridge's, which has none; then come proxy and agent.
 */
function randomSubnet(): { subnet: string; proxy: string } {
  const block = randomInt(2 ** 14) * 8;
  const address = (host: number) => `198.${18 + (block >> 16)}.${(block >> 8) & 255}.${(block & 255) + host}`;
  return { subnet: `${address(0)}/29`, proxy: address(2) };
}

/**
 * Makes a rep's bridge.
 * @returns the address that is its proxy's.
 * @throws engine_*.
 */
export async function createBridge(
  engine: Pick<Engine, 'createInternalNetwork'>,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<string> {
  for (let tried = 1; ; tried++) {
    const { subnet, proxy } = randomSubnet();
    try {
      await engine.createInternalNetwork(name, subnet, labels);
      return proxy;
    } catch (error) {
      const taken = isEvaluatorError(error, 'engine_error') && /overlap/i.test(engineWords(error));
      if (!taken || tried === SUBNETS_TRIED) throw error;
    }
  }
}
