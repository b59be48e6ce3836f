import { EvaluatorError } from '../errors.ts';
import { type Measurement, osImageHash } from '../wire/measurement.ts';
import type { WireEvent } from '../wire/result.ts';
import { replay } from './event-log.ts';
import type { TdxQuote } from './quote.ts';
import type { RuntimeClaims } from './runtime-claims.ts';

/**
 * All four registers of the quote are what the log replays to.
 * @throws event_log_replay_mismatch naming the register; event_log_invalid, event_digest_mismatch.
 */
export function verifyReplay(quote: Pick<TdxQuote, 'rtmr'>, events: readonly WireEvent[]): void {
  const differing = replay(events).findIndex((register, index) => register !== quote.rtmr[index]);
  if (differing >= 0) {
    throw new EvaluatorError(
      'event_log_replay_mismatch',
      `event log: does not replay to rtmr${differing} of the quote`,
    );
  }
}

/** The measurement that a quote and its (replayed) log stand for, os_image_hash by registers (spec/01). */
export function measurementOf(
  quote: Pick<TdxQuote, 'mrtd' | 'rtmr'>,
  claims: Pick<RuntimeClaims, 'composeHash'>,
): Measurement {
  const [rtmr0, rtmr1, rtmr2] = quote.rtmr;
  const { mrtd } = quote;
  return {
    mrtd,
    rtmr0,
    rtmr1,
    rtmr2,
    compose_hash: claims.composeHash,
    os_image_hash: osImageHash({ mrtd, rtmr1, rtmr2 }),
  };
}
