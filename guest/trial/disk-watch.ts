import { freeDiskBytes } from '../engine/disk.ts';
import type { TrialContext } from './session.ts';

/** Deadline of reading a writable layer's size (spec/03, Budgets). */
export const LAYER_SIZE_DEADLINE_MS = 10_000;

/**
 * storage_mb is enforced by nothing in overlay2: while the VM's free space is below the reserve, the size of
 * a rep's writable layer is read, beside the other budgets' polls.
 */
export class DiskWatch {
  readonly #context: TrialContext;
  readonly #containerId: string;
  readonly #storageBytes: number;
  #over = false;
  #asking = false;

  constructor(context: TrialContext, containerId: string, storageBytes: number) {
    this.#context = context;
    this.#containerId = containerId;
    this.#storageBytes = storageBytes;
  }

  /** Starts a look at the free space, and at the layer's size when it is low; never waits for either. */
  look(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#exceeds().then(
      (over) => {
        this.#over ||= over;
        this.#asking = false;
      },
      // A layer too large to be measured in time is over (spec/03); a broken engine shows at the next call.
      () => {
        this.#over = true;
      },
    );
  }

  async #exceeds(): Promise<boolean> {
    if ((await freeDiskBytes(this.#context.diskPath)) >= this.#context.diskReserveBytes) return false;
    return (
      (await this.#context.engine.writableLayerBytes(this.#containerId, LAYER_SIZE_DEADLINE_MS)) >
      this.#storageBytes
    );
  }

  isOver(): boolean {
    return this.#over;
  }
}
