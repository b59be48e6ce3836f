import { BoundedCapture } from '../../engine/frames.ts';
import type { Captured } from '../../engine/port.ts';

/** Of the start, and of the end, of each stream of a command. */
const KEEP_BYTES = 128 * 1024;
/** A number of 10 digits and its newline. */
const MAX_PID_LINE = 11;
const NEWLINE = 0x0a;

/** What a command printed, as far as it is kept. */
export interface Printed {
  stdout: string;
  stderr: string;
  truncated: boolean;
}

function text({ head, tail, totalBytes }: Captured): string {
  const leftOut = totalBytes - head.length - tail.length;
  if (leftOut === 0) return Buffer.concat([head, tail]).toString('utf8');
  return `${head.toString('utf8')}\n[... ${leftOut} bytes left out ...]\n${tail.toString('utf8')}`;
}

/**
 * Takes the output of a command that was started by `commandLine`: the first line on stderr is its process id in
 * the container. Bytes that are not UTF-8 become U+FFFD.
 */
export class CommandCapture {
  readonly #stdout = new BoundedCapture(KEEP_BYTES);
  readonly #stderr = new BoundedCapture(KEEP_BYTES);
  readonly #started = Promise.withResolvers<number | null>();
  #pidLine: Buffer | null = Buffer.alloc(0);

  /** The command's process id in its container; null when it was never started. */
  get pid(): Promise<number | null> {
    return this.#started.promise;
  }

  write(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    if (stream === 'stdout') this.#stdout.write(bytes);
    else if (this.#pidLine === null) this.#stderr.write(bytes);
    else this.#readPid(Buffer.concat([this.#pidLine, bytes]));
  }

  /** To be called when no more comes. */
  end(): void {
    if (this.#pidLine !== null) this.#noPid(this.#pidLine);
  }

  printed(): Printed {
    const stdout = this.#stdout.captured();
    const stderr = this.#stderr.captured();
    const truncated = [stdout, stderr].some(
      ({ head, tail, totalBytes }) => totalBytes > head.length + tail.length,
    );
    return { stdout: text(stdout), stderr: text(stderr), truncated };
  }

  #readPid(line: Buffer): void {
    const end = line.indexOf(NEWLINE);
    if (end < 0 && line.length < MAX_PID_LINE) {
      this.#pidLine = line;
      return;
    }
    const digits = /^[1-9]\d{0,9}$/.exec(line.toString('latin1', 0, Math.max(end, 0)))?.[0];
    if (digits === undefined) {
      this.#noPid(line);
      return;
    }
    this.#pidLine = null;
    this.#started.resolve(Number(digits));
    this.#stderr.write(line.subarray(end + 1));
  }

  #noPid(bytes: Buffer): void {
    this.#pidLine = null;
    this.#stderr.write(bytes);
    this.#started.resolve(null);
  }
}
