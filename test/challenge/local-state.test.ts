import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { loadIdentity } from '../../challenge/local-state.ts';
import { scratchFolder } from '../support/scratch.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

it("a server's certificate is kept while it outlasts what is issued, and renewed before it would not", async () => {
  const config = { state_dir: scratchFolder(), host: '127.0.0.1' };
  const first = await loadIdentity(config, NOW_MS, NOW_MS + DAY_MS);
  const end = new X509Certificate(first.certificatePem).validToDate.getTime();
  expect(await loadIdentity(config, end - 2 * DAY_MS, end - DAY_MS)).toEqual(first);
  const renewed = await loadIdentity(config, end - 2 * DAY_MS, end + DAY_MS);
  expect(renewed.caPem).not.toBe(first.caPem);
  expect(new X509Certificate(renewed.certificatePem).validToDate.getTime()).toBeGreaterThan(end + DAY_MS);
  expect(await loadIdentity(config, end, end + DAY_MS)).toEqual(renewed);
});
