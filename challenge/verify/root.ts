import { X509Certificate } from 'node:crypto';
import { EvaluatorError } from '../../guest/errors.ts';

/** DER of the one certificate in a PEM text: the trusted TDX root. @throws certificate_malformed. */
export function parseRoot(pem: string): Buffer {
  try {
    return new X509Certificate(pem).raw;
  } catch (cause) {
    throw new EvaluatorError('certificate_malformed', 'TDX root: not a PEM certificate', { cause });
  }
}
