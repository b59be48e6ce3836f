import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { type Code, EvaluatorError } from '../../guest/errors.ts';

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

/** OpenSSL's verdict on a client's chain, and our code for it; any other is no chain to the KMS root. */
const CODES: Readonly<Record<string, Code>> = {
  CERT_HAS_EXPIRED: 'client_certificate_expired',
  CERT_NOT_YET_VALID: 'client_certificate_not_yet_valid',
  INVALID_PURPOSE: 'client_certificate_purpose',
};

/** The part of a connection that is judged. */
export type JudgedSocket = Pick<
  TLSSocket,
  'authorized' | 'authorizationError' | 'isSessionReused' | 'getPeerX509Certificate'
>;

/**
 * Judges a connection whose handshake is over, before anything is read from it. The server does not let
 * OpenSSL reject it, so that the peer learns why.
 * @returns the client's certificate.
 * @throws tls_session_reused, client_certificate_missing, client_certificate_expired,
 *   client_certificate_not_yet_valid, client_certificate_purpose, client_certificate_untrusted.
 */
export function verifyConnection(socket: JudgedSocket): X509Certificate {
  // A resumed session would carry the verdict of an earlier connection.
  if (socket.isSessionReused()) {
    throw new EvaluatorError('tls_session_reused', 'connection: a resumed session; make a new one');
  }
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) {
    throw new EvaluatorError('client_certificate_missing', 'connection: no client certificate was shown');
  }
  if (!socket.authorized) {
    // Typed as an Error, but a server's socket has OpenSSL's name for it.
    const reason = String(socket.authorizationError);
    const code = CODES[reason] ?? 'client_certificate_untrusted';
    throw new EvaluatorError(code, `connection: client certificate refused (${reason.slice(0, 64)})`);
  }
  // OpenSSL lets a certificate without extended key usage pass for any.
  if (!certificate.keyUsage?.includes(CLIENT_AUTH)) {
    throw new EvaluatorError(
      'client_certificate_purpose',
      'connection: the client certificate is not for client authentication',
    );
  }
  return certificate;
}
