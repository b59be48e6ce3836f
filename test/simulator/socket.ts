import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type GuestAgentOptions, startGuestAgent } from '../../simulator/agent-api.ts';
import { machine, NOW_MS } from './machine.ts';

/** A folder that goes with the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'simulator-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A guest agent for one test: what it does not choose is the default machine's. */
export async function runningAgent(options: Partial<GuestAgentOptions> = {}) {
  const faults = options.faults ?? [];
  const platform = options.platform ?? (await machine({ faults }));
  const socketPath = options.socketPath ?? join(temporaryFolder(), 'dstack.sock');
  const agent = await startGuestAgent({ clock: () => NOW_MS, ...options, socketPath, platform, faults });
  onTestFinished(() => agent.close());
  return { agent, platform, socketPath };
}

/** A raw HTTP exchange, as other clients than the SDK see it. */
export function exchange(
  socketPath: string,
  options: { method: string; path: string; body: string; signal?: AbortSignal },
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  return new Promise((resolve, reject) => {
    const { method, path, body, signal } = options;
    const call = request({ socketPath, method, path, ...(signal ? { signal } : {}) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    call.on('error', reject);
    call.end(body);
  });
}
