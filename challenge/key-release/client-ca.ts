import { X509Certificate } from 'node:crypto';
import { EvaluatorError } from '../../guest/errors.ts';

function invalid(problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('client_ca_invalid', `client_ca_pem: ${problem}`, { cause });
}

function only(pem: string): X509Certificate {
  if (pem.split('-----BEGIN CERTIFICATE-----').length !== 2) throw invalid('not exactly one certificate');
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw invalid('not X.509', cause);
  }
}

/**
 * The root that guests' certificates are believed under is one self-signed CA, and not the one that vouches
 * for this server: whoever holds that one could otherwise issue guests.
 * @throws client_ca_invalid.
 */
export function verifyClientCa(clientCaPem: string, serverCaPem: string): void {
  const root = only(clientCaPem);
  if (!root.ca || !root.checkIssued(root) || !root.verify(root.publicKey)) {
    throw invalid('not a self-signed CA; give the root of the KMS');
  }
  if (root.publicKey.equals(new X509Certificate(serverCaPem).publicKey)) {
    throw invalid("it is this server's own CA; give the root of the KMS");
  }
}
