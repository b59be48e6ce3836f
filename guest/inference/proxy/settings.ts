import { readFileSync, rmSync } from 'node:fs';
import type { Caps } from './meter.ts';
import type { Upstream } from './upstream.ts';

/** Where the proxy's container keeps what is its own. */
export const PROXY_HOME = '/proxy';
/** Uploaded before the start; it holds the endpoint's key, and is gone once it is read. */
export const SETTINGS_FILE = 'settings.json';
/** There as soon as the proxy listens, and up to date ever after. */
export const COUNTS_FILE = 'counts.json';

/** What the guest hands the proxy of one rep. Times in ms. */
export interface Settings {
  /** The rep's own bridge alone: nobody on the outside one is served. */
  host: string;
  port: number;
  bearer: string;
  models: readonly string[];
  maxReplyTokens: number;
  caps: Caps;
  upstream: Upstream;
  receiveMs: number;
}

/** Reads the settings, once. */
export function takeSettings(path: string): Settings {
  const settings = JSON.parse(readFileSync(path, 'utf8')) as Settings;
  rmSync(path);
  return settings;
}
