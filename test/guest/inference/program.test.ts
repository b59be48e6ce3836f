import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROGRAM_FILES, proxyFiles } from '../../../guest/inference/program.ts';
import { importedFiles } from '../../../scripts/images/closure.ts';

const ROOT = join(import.meta.dirname, '../../..');
const ENTRY = 'guest/inference/proxy/main.ts';

describe('the program of the proxy', () => {
  it('is its entry and all that this imports, no more, and an image of the guest has it', () => {
    const imported = importedFiles(ROOT, ENTRY);
    expect(PROGRAM_FILES.map((path) => `guest/${path}`)).toEqual(imported);
    expect(importedFiles(ROOT, 'guest/eval.ts')).toEqual(expect.arrayContaining(imported));
  });

  it("needs no package: it imports Node's own modules alone", () => {
    const foreign = PROGRAM_FILES.flatMap((path) =>
      [...readFileSync(join(ROOT, 'guest', path), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^'.][^']*)'/g)]
        .map(([, name = '']) => name)
        .filter((name) => !name.startsWith('node:')),
    );
    expect(foreign).toEqual([]);
  });

  it('comes with settings that only root reads', () => {
    const settings = {
      host: '198.18.0.2',
      port: 1,
      bearer: 'b',
      models: ['m'],
      maxReplyTokens: 1,
      caps: { requests: 1, sent_bytes: 1, received_bytes: 1, tokens: 1 },
      upstream: { url: 'https://x', apiKey: 'sk-upstream', caPem: null, connectMs: 1, totalMs: 1 },
      receiveMs: 1,
    };
    const files = proxyFiles(settings);
    const secret = files.filter(({ bytes }) => bytes.includes('sk-upstream'));
    expect(secret.map(({ path, mode }) => [path, mode])).toEqual([['proxy/settings.json', 0o600]]);
    expect(JSON.parse(String(secret[0]?.bytes))).toEqual(settings);
  });
});
