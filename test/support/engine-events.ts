import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

export interface EngineEvent {
  /** `create`, `start`, `exec_start: COMMAND`, ... */
  action: string;
  labels: Readonly<Record<string, string>>;
}

export interface EngineEvents {
  /** What the engine has told so far; it tells of the past second too late for a race, so ask at the end. */
  seen(): Promise<EngineEvent[]>;
  stop(): void;
}

/** Listens to the engine's own word on what happens to containers with `label`. */
export async function watchEngine(label: string, socket = '/var/run/docker.sock'): Promise<EngineEvents> {
  const child = spawn(
    'docker',
    ['-H', `unix://${socket}`, 'events', '--filter', `label=${label}`, '--format', '{{json .}}'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(child, 'spawn');
  const events: EngineEvent[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { Action, Actor } = JSON.parse(line) as {
      Action: string;
      Actor: { Attributes: Record<string, string> };
    };
    events.push({ action: Action, labels: Actor.Attributes });
  });
  // The command gives no sign of having subscribed.
  await sleep(500);
  return {
    seen: async () => {
      await sleep(500);
      return events;
    },
    stop: () => child.kill(),
  };
}
