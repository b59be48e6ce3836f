import { freeDiskBytes } from '../engine/disk.ts';
import type { Engine } from '../engine/port.ts';
import type { TrialContext } from './session.ts';

/** Deadline of reading a writable layer's size (spec/03, Budgets). */
const LAYER_SIZE_DEADLINE_MS = 10_000;
/** Files of the engine's own that it mounts into every container, writable, outside of the layer. */
const ENGINE_FILES = ['/etc/hosts', '/etc/hostname', '/etc/resolv.conf'] as const;

/** What a container has written to the VM's disk, in bytes. @throws engine_*: it cannot be told in time. */
export async function writtenBytes(engine: Engine, containerId: string): Promise<number> {
  const [layer, ...files] = await Promise.all([
    engine.writableLayerBytes(containerId, LAYER_SIZE_DEADLINE_MS),
    ...ENGINE_FILES.map((path) => engine.statPath(containerId, path)),
  ]);
  return files.reduce((sum, file) => sum + (file?.sizeBytes ?? 0), layer);
}

/**
 * storage_mb is enforced by nothing in overlay2: while the VM's free space is below the reserve, what a
 * container has written is read, beside the other budgets' polls.
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

  /** Starts a look at the free space, and at what was written when it is low; never waits for either. */
  look(): void {
    if (this.#asking || this.#over) return;
    this.#asking = true;
    this.#exceeds().then(
      (over) => {
        this.#over = over;
        this.#asking = false;
      },
      // A layer too large to be measured in time is over (spec/03); a broken engine shows at the next call.
      () => {
        this.#over = true;
      },
    );
  }

  async #exceeds(): Promise<boolean> {
    const { engine, diskPath, diskReserveBytes } = this.#context;
    if ((await freeDiskBytes(diskPath)) >= diskReserveBytes) return false;
    return (await writtenBytes(engine, this.#containerId)) > this.#storageBytes;
  }

  isOver(): boolean {
    return this.#over;
  }
}
