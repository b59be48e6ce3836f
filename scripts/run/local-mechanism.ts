import { parseDocument } from 'yaml';

/** What a developer's machine may run; the floors of a real VM answer CVEs that a desk need not. */
const DESK_FLOORS = { engine: '20.10', runc: '1.0' } as const;

const TRACKS = ['skills', 'mcp_servers', 'packages', 'repositories'] as const;

/**
 * The shipped mechanism with a desk's floors for engine and runc, and as many tasks as a desk has; nothing else
 * is changed. Its digest is another one, so no RESULT made with it passes for one of a real VM.
 */
export function localMechanism(shipped: Buffer): Buffer {
  const document = parseDocument(shipped.toString('utf8'));
  for (const [name, version] of Object.entries(DESK_FLOORS)) {
    document.setIn(['floors', name, 'version'], version);
    document.setIn(['floors', name, 'answers'], []);
  }
  for (const track of TRACKS) document.setIn(['tracks', track, 'tasks_per_round'], 'plan');
  document.commentBefore =
    " The shipped mechanism with a desk's floors for engine and runc, and rounds of any size.";
  return Buffer.from(document.toString());
}
