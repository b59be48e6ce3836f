import { type Observed, UNKNOWN } from '../../compose/verdict.ts';
import { parseEventLog, readRuntimeClaims, verifyMrConfigId } from '../../guest/attest/event-log.ts';
import { isDebugTd, parseQuote } from '../../guest/attest/quote.ts';
import { measurementOf, verifyReplay } from '../../guest/attest/registers.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { osImageHash } from '../../guest/wire/measurement.ts';

/** What a captured attestation says; its signature is not looked at, that is `verify`'s. */
export interface Captured extends Observed {
  /** UNKNOWN without an event log. */
  storageFs: string;
}

/** A quote as raw bytes or as a line of hex. */
export function quoteBytes(file: Buffer): Buffer {
  const text = file.toString('latin1').trim();
  return /^(?:0x)?(?:[0-9a-f]{2})+$/i.test(text) ? Buffer.from(text.replace(/^0x/i, ''), 'hex') : file;
}

/**
 * The registers of a quote, and what its event log adds once all four replay.
 * @param eventLog JSON text of the guest agent; null when only the quote was kept.
 * @throws quote_malformed, td_debug, event_log_replay_mismatch, mr_config_id_mismatch and the log's own codes.
 */
export function readAttestation(quoteFile: Buffer, eventLog: string | null): Captured {
  const quote = parseQuote(quoteBytes(quoteFile));
  if (isDebugTd(quote)) {
    throw new EvaluatorError('td_debug', 'quote: a TD in debug mode, whose measurement vouches for nothing');
  }
  if (eventLog === null) {
    const { mrtd } = quote;
    const [rtmr0, rtmr1, rtmr2] = quote.rtmr;
    return {
      measurement: {
        mrtd,
        rtmr0,
        rtmr1,
        rtmr2,
        compose_hash: UNKNOWN,
        os_image_hash: osImageHash({ mrtd, rtmr1, rtmr2 }),
      },
      key_provider: { name: UNKNOWN, id: UNKNOWN },
      storageFs: UNKNOWN,
    };
  }
  const events = parseEventLog(eventLog);
  verifyReplay(quote, events);
  const claims = readRuntimeClaims(events);
  verifyMrConfigId(quote, claims.composeHash);
  const { keyProvider, storageFs } = claims;
  return { measurement: measurementOf(quote, claims), key_provider: keyProvider, storageFs };
}
