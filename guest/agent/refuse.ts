import { EvaluatorError } from '../errors.ts';

const SHOWN_BYTES = 80;

/** A name from an archive, fit for a log line: ASCII only, control and foreign bytes as \xNN, cut short. */
export function shownName(raw: Uint8Array): string {
  const text = [...raw.subarray(0, SHOWN_BYTES)]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
        ? String.fromCharCode(byte)
        : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('');
  return `"${text}${raw.byteLength > SHOWN_BYTES ? '...' : ''}"`;
}

/** The error of every broken limit of spec/08. `where` is `archive` or a shown name. */
export function refused(where: string, what: string, options?: { cause?: unknown }): EvaluatorError {
  return new EvaluatorError('agent_package_refused', `agent package: ${where}: ${what}`, options);
}
