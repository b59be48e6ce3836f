import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import {
  EXPORTER,
  MAX_KEY_REQUEST_BYTES,
  parseKeyRequest,
  parseStarted,
} from '../../guest/wire/key-release.ts';
import { type PlaceCaps, Places } from '../http/places.ts';
import { RateWindow } from '../http/rate-window.ts';
import { denialReply, jsonReply, type Reply } from '../http/replies.ts';
import { authorisedRun, type BodyLimit, readBodyWithin, verifyAnnouncedSize } from '../http/requests.ts';
import type { Run } from '../ledger/ledger.ts';
import { readClientCertificate, spkiDigestOf } from './client-certificate.ts';
import { type KeyReleaseDeps, releaseKeys } from './exchange.ts';
import { noteStarted } from './started.ts';
import { verifyConnection } from './tls-verdict.ts';

const PATH = /^\/key-release\/v1\/runs\/([^/?]{1,384})(|\/started)$/;
const KEY_REQUEST: BodyLimit = { maxBytes: MAX_KEY_REQUEST_BYTES, code: 'request_too_large' };
const STARTED: BodyLimit = { maxBytes: 4096, code: 'request_too_large' };
/** Of both exchanges together; a guest needs two. */
const REQUESTS_PER_MINUTE = 10;
/** Exchanges in memory at once, each with a body of at most 4 MiB. */
const EXCHANGES: PlaceCaps = { total: 32, perOwner: 4 };

export interface KeyReleaseRouteDeps extends KeyReleaseDeps {
  /** For a whole body, milliseconds. */
  bodyMs: number;
  /** Told how each authorised exchange ended; without secrets. */
  onExchange: (event: {
    exchange: 'release' | 'started';
    evalRunId: string;
    /** Null when it succeeded. */
    error: unknown;
  }) => void;
}

interface Target {
  evalRunId: string;
  exchange: 'release' | 'started';
}

function parseTarget({ method, url }: IncomingMessage): Target {
  const [, encodedId, resource] = PATH.exec(url ?? '') ?? [];
  try {
    if (encodedId !== undefined) {
      if (method !== 'POST') throw new EvaluatorError('method_not_allowed', 'request: only POST here');
      return { evalRunId: decodeURIComponent(encodedId), exchange: resource === '' ? 'release' : 'started' };
    }
  } catch (error) {
    if (isEvaluatorError(error)) throw error;
    // A malformed escape names nothing that exists.
  }
  throw new EvaluatorError('route_unknown', 'request: no such route');
}

/**
 * The two exchanges of spec/04. The order is the same for both: what TLS says, route and announced size,
 * run token, and only then a body is read. A refusal carries its code alone.
 */
export function createKeyReleaseRoutes(deps: KeyReleaseRouteDeps) {
  const rate = new RateWindow(REQUESTS_PER_MINUTE, 60_000);
  const used = new WeakSet<object>();
  const exchanges = new Places(EXCHANGES);

  const serve = async (
    request: IncomingMessage,
    run: Run,
    exchange: Target['exchange'],
    certificate: X509Certificate,
  ): Promise<Reply> => {
    const socket = request.socket as TLSSocket;
    if (exchange === 'started') {
      const notice = parseStarted(await readBodyWithin(request, STARTED, deps.bodyMs));
      return jsonReply(200, noteStarted(run, notice, spkiDigestOf(certificate), deps));
    }
    // Exported before anything is awaited: a peer that hangs up takes its connection's secrets along.
    const tlsExporter = socket
      .exportKeyingMaterial(EXPORTER.length, EXPORTER.label, Buffer.alloc(0))
      .toString('hex');
    const keyRequest = parseKeyRequest(await readBodyWithin(request, KEY_REQUEST, deps.bodyMs));
    const asked = { run, request: keyRequest, certificate: readClientCertificate(certificate), tlsExporter };
    return jsonReply(200, await releaseKeys(asked, deps));
  };

  const admit = (request: IncomingMessage): { run: Run; target: Target; certificate: X509Certificate } => {
    const certificate = verifyConnection(request.socket as TLSSocket);
    // A second request would find the same exporter, and so could repeat the first one's quote.
    if (used.has(request.socket)) {
      throw new EvaluatorError('tls_connection_reused', 'connection: one exchange each');
    }
    used.add(request.socket);
    const target = parseTarget(request);
    verifyAnnouncedSize(request, target.exchange === 'started' ? STARTED : KEY_REQUEST);
    const run = authorisedRun(request, deps.ledger.run(target.evalRunId));
    rate.take(run.evalRunId, deps.now());
    return { run, target, certificate };
  };

  return async (request: IncomingMessage): Promise<Reply> => {
    let admitted: ReturnType<typeof admit>;
    try {
      admitted = admit(request);
    } catch (error) {
      return denialReply(error);
    }
    const { run, target, certificate } = admitted;
    const told = { exchange: target.exchange, evalRunId: run.evalRunId };
    try {
      const reply = await exchanges.hold(run.evalRunId, () =>
        serve(request, run, target.exchange, certificate),
      );
      deps.onExchange({ ...told, error: null });
      return reply;
    } catch (error) {
      deps.onExchange({ ...told, error });
      return denialReply(error);
    }
  };
}
