import { z } from 'zod';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { MAX_RESULT_BYTES } from '../../guest/wire/result.ts';
import { int, printable, taskId } from '../../guest/wire/scalars.ts';

const MAX_LINE_BYTES = 64 * 1024;
/** Lines that are no event of a guest and are shown all the same. */
const MAX_FOREIGN_LINES = 200;
const RESULT = Buffer.from('RESULT=');

const word = z.string().regex(/^[a-z0-9_]{1,64}$/);
const mark = z.enum(['begin', 'end']);
const guestEvent = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('stage'),
    stage: z.enum(['preflight', 'unlock', 'run', 'reduce', 'emit']),
    mark,
  }),
  z.object({ event: z.literal('step'), step: word, mark }),
  z.object({
    event: z.literal('rep'),
    task_id: taskId,
    rep: int,
    outcome: word,
    failure: word.nullable(),
    reward: z.number().nullable(),
    wall_ms: int,
  }),
  z.object({ event: z.literal('error'), code: word, message: z.string().transform(printable) }),
]);

/** What a line of the log says; every text in it is short printable ASCII. */
export type GuestEvent = z.infer<typeof guestEvent> | { event: 'log'; line: string };

/**
 * Reads a guest's public log as it grows. Anybody between the guest and here may have written it: it is for
 * people to follow, and what a run came to is asked of the challenge.
 */
export class LogReader {
  #lines = 0;
  #foreign = 0;
  #result: Buffer | null = null;

  /** The bytes after the last `RESULT=`; null while there is none. Not checked. */
  get result(): Buffer | null {
    return this.#result;
  }

  /** @param log the whole log so far. @returns what its new complete lines say. */
  read(log: Buffer): GuestEvent[] {
    const events: GuestEvent[] = [];
    let count = 0;
    for (let start = 0, end = log.indexOf(10); end >= 0; start = end + 1, end = log.indexOf(10, start)) {
      if (++count <= this.#lines) continue;
      const event = this.#line(log.subarray(start, end));
      if (event) events.push(event);
    }
    this.#lines = Math.max(this.#lines, count);
    return events;
  }

  #line(line: Buffer): GuestEvent | null {
    if (line.subarray(0, RESULT.length).equals(RESULT)) {
      const bytes = line.subarray(RESULT.length);
      if (bytes.length <= MAX_RESULT_BYTES) this.#result = Buffer.from(bytes);
      return null;
    }
    const event = parseEvent(line);
    if (event !== undefined) return event;
    if (++this.#foreign > MAX_FOREIGN_LINES) return null;
    return { event: 'log', line: printable(line.subarray(0, 300).toString('latin1')) };
  }
}

/** Null for a JSON object that is no event to show; undefined for anything else. */
function parseEvent(line: Buffer): GuestEvent | null | undefined {
  try {
    const json = parseForeignJson(line, { maxBytes: MAX_LINE_BYTES, maxDepth: 8 });
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined;
    return guestEvent.safeParse(json).data ?? null;
  } catch {
    return undefined;
  }
}
