import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connectDocker } from '../../guest/engine/docker.ts';
import { LABEL } from '../../guest/trial/labels.ts';
import { type Files, writeFiles } from './plain-task.ts';

const BASE = 'cvm-evaluator-test/busybox:1';

/** A task on the smallest image there is: right when /app/answer says so. */
export const SMALL_TASK: Files = {
  'task.toml':
    '[agent]\ntimeout_sec = 120.0\n[environment]\nmemory_mb = 128\nstorage_mb = 256\nallow_internet = false\n',
  'instruction.md': 'Write the word right to /app/answer.\n',
  'environment/Dockerfile': `FROM ${BASE}\n`,
  'tests/test.sh':
    '#!/bin/sh\nif [ "$(cat /app/answer)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
  'solution/solve.sh': '#!/bin/sh\necho right > /app/answer\n',
};

/** A folder of plain tasks. */
export async function writeTasks(folder: string, tasks: Readonly<Record<string, Files>>): Promise<string> {
  for (const [name, files] of Object.entries(tasks)) await writeFiles(join(folder, name), files);
  return folder;
}

/** The folder of an agent that is one shell script. */
export async function writeAgent(folder: string, script: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFiles(folder, {
    'agent.yaml': 'schema_version: 1\nkind: container\ncommand: ["sh", "/agent/agent.sh"]\nenv: []\n',
    'agent.sh': script,
  });
  return folder;
}

/** Our objects on the engine, each as `kind id owner`. */
export async function ownedObjects(socket = '/var/run/docker.sock'): Promise<string[]> {
  const objects = await connectDocker(socket).listOwned(LABEL.session);
  return objects.map(({ kind, id, labels }) => `${kind} ${id} ${labels[LABEL.owner]}`).sort();
}
