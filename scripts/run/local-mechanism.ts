import { parseDocument } from 'yaml';

/** What a developer's machine may run; the floors of a real VM answer CVEs that a desk need not. */
const DESK_FLOORS = { engine: '20.10', runc: '1.0' } as const;

/**
 * The shipped mechanism with a desk's floors for engine and runc, and nothing else changed. Its digest is
 * another one, so no RESULT made with it passes for one of a real VM.
 */
export function localMechanism(shipped: Buffer): Buffer {
  const document = parseDocument(shipped.toString('utf8'));
  for (const [name, version] of Object.entries(DESK_FLOORS)) {
    document.setIn(['floors', name, 'version'], version);
    document.setIn(['floors', name, 'answers'], []);
  }
  document.commentBefore = " The shipped mechanism with a desk's floors for engine and runc.";
  return Buffer.from(document.toString());
}
