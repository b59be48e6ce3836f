import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { FrameParser } from '../../guest/engine/frames.ts';
import { systemClock } from '../../guest/trial/clock.ts';
import { LABEL } from '../../guest/trial/labels.ts';
import { sweepSession } from '../../guest/trial/sweep.ts';
import { containerBody, readService } from './compose-container.ts';
import type { DeskEngine } from './desk-engine.ts';
import type { GuestStart } from './guest-place.ts';
import type { Running, StopSignal } from './process.ts';

/** A run may take days: nothing but its end ends this wait. */
const FOREVER_MS = 2 ** 31 - 1;
/** A guest takes its containers down first. */
const STOP_WITHIN_MS = 30_000;
const ASK_EVERY_MS = 1000;
/** 128 and SIGKILL. */
const KILLED = 137;

/** Where a desk runs its guest's container. */
export interface Desk {
  engine: DeskEngine;
  /** The engine's socket, the one that the guest is given. */
  engineSocket: string;
  id: string;
  /** On all that it makes on the engine. */
  labels: Readonly<Record<string, string>>;
  /** The bridge that this desk has made. */
  network: string;
}

/** Hands on the lines of one output, each whole. */
function lines(onLine: (line: string) => void) {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    take: (bytes: Buffer) => {
      const [...whole] = (rest + decoder.write(bytes)).split('\n');
      rest = whole.pop() ?? '';
      for (const line of whole) onLine(line);
    },
    end: () => {
      if (rest !== '') onLine(rest);
    },
  };
}

async function readOutput(stream: Readable, start: Pick<GuestStart, 'onStdout' | 'onStderr'>): Promise<void> {
  const outputs = { stdout: lines(start.onStdout), stderr: lines(start.onStderr) };
  const frames = new FrameParser((name, bytes) => outputs[name].take(bytes));
  for await (const chunk of stream) frames.write(chunk as Buffer);
  for (const output of Object.values(outputs)) output.end();
}

/** Removes what the guest in a container has left on the engine. @throws engine_*. */
export async function sweepGuest(engine: DeskEngine, containerId: string): Promise<void> {
  const owner = `container:${containerId}`;
  const owned = (await engine.listOwned(LABEL.session)).filter(({ labels }) => labels[LABEL.owner] === owner);
  const sessions = new Set(owned.map(({ labels }) => labels[LABEL.session] ?? ''));
  for (const id of sessions) await sweepSession(engine, { id, owner }, systemClock);
}

/** Asks the guest to end until it does: the first process of a container misses signals before it has begun. */
export async function stopContainer(engine: DeskEngine, id: string, signal: StopSignal): Promise<void> {
  for (let waited = 0; waited < STOP_WITHIN_MS; waited += ASK_EVERY_MS) {
    if (!(await engine.inspect(id)).running) return;
    await engine.terminate(id, signal);
    const ended = engine.waitExit(id, ASK_EVERY_MS).then(
      () => true,
      () => false,
    );
    if (await ended) return;
  }
  await engine.kill(id);
}

/**
 * Starts the guest's image as a container with exactly what the compose says. Its sources on this machine are
 * the desk's engine and the simulated machine's guest agent.
 * @returns the guest; when it has ended, whatever it left is swept before `exited` resolves.
 * @throws compose_mismatch, engine_*.
 */
export async function startContainer(desk: Desk, imageId: string, start: GuestStart): Promise<Running> {
  const { engine } = desk;
  const body = containerBody(readService(start.appCompose), {
    imageId,
    values: start.env,
    sources: new Map([
      ['/var/run/docker.sock', desk.engineSocket],
      ['/var/run/dstack.sock', start.guestAgentSocket],
    ]),
    network: desk.network,
    labels: desk.labels,
  });
  const id = await engine.createFrom(`cvm-evaluator-guest-${desk.id}`, body);
  await engine.start(id);
  const ended = engine.waitExit(id, FOREVER_MS);
  const output = readOutput(await engine.follow(id), start);
  const exited = Promise.all([ended, output]).then(async ([code]) => {
    await sweepGuest(engine, id);
    return code === KILLED ? null : code;
  });
  exited.catch(() => undefined);
  const stop = async (signal: StopSignal) => {
    await stopContainer(engine, id, signal);
    await exited;
  };
  let stopped: Promise<void> | null = null;
  return {
    name: 'guest',
    exited,
    stop: (signal = 'SIGTERM') => {
      // What an engine refuses now is left to the reaper.
      stopped ??= stop(signal).catch(() => undefined);
      return stopped;
    },
  };
}
