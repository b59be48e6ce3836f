import { parseDocument } from 'yaml';
import { z } from 'zod';
import { inferenceSchema } from '../../guest/wire/inference.ts';
import { packageIndexSchema } from '../../guest/wire/package-index.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { parseYaml } from '../../guest/wire/yaml.ts';

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

const offersSchema = z.strictObject({
  inference: inferenceSchema.nullable().default(null),
  packages: packageIndexSchema.nullable().default(null),
});

/** A mechanism that offers agents these models and packages. @throws mechanism_invalid, schema_invalid. */
export function withOffers(mechanism: Buffer, offers: Buffer): Buffer {
  const offered = parseSchema(offersSchema, parseYaml(offers, 'offers', 'mechanism_invalid'), 'offers');
  const document = parseDocument(mechanism.toString('utf8'));
  for (const [section, value] of Object.entries(offered)) document.setIn([section], value);
  return Buffer.from(document.toString());
}
