import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../../../shared/real-tdx');

/** A genuine quote with its event log and app-compose; not part of the repository. */
export const realTdx = {
  absent: !existsSync(join(folder, 'quote.hex')),
  why: 'no genuine TDX sample at ../shared/real-tdx',
  quote: () => Buffer.from(readFileSync(join(folder, 'quote.hex'), 'utf8').trim(), 'hex'),
  eventLog: () => readFileSync(join(folder, 'event_log.json'), 'utf8'),
  appCompose: () => readFileSync(join(folder, 'app-compose.json'), 'utf8'),
};
