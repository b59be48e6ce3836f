import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Counts, Meter } from './meter.ts';
import { createProxyServer } from './server.ts';
import { COUNTS_FILE, PROXY_HOME, SETTINGS_FILE, takeSettings } from './settings.ts';

export type { Settings } from './settings.ts';

const settings = takeSettings(join(PROXY_HOME, SETTINGS_FILE));
const countsFile = join(PROXY_HOME, COUNTS_FILE);

/** Whole at every moment: the guest kills this process when it likes. */
function keep(counts: Counts): void {
  writeFileSync(`${countsFile}.new`, JSON.stringify(counts));
  renameSync(`${countsFile}.new`, countsFile);
}

const meter = new Meter(settings.caps, keep);
const server = createProxyServer({
  bearer: settings.bearer,
  offer: { models: settings.models, maxReplyTokens: settings.maxReplyTokens },
  upstream: settings.upstream,
  meter,
  receiveMs: settings.receiveMs,
  nowMs: Date.now,
});
server.listen(settings.port, settings.host, () => keep(meter.counts));
