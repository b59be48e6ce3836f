import { Socket } from 'node:net';
import { isMainThread } from 'node:worker_threads';

/** The parent's end of this pipe closes with the parent, even when that is killed. */
export const LIFELINE_FD = 3;
/** A guest takes its containers down first. */
const END_WITHIN_MS = 60_000;

/**
 * Preloaded into each process that `startProcess` starts: when its parent is gone, it is asked to end, as the
 * parent would have asked it, and a little later made to.
 */
function endWithParent(): void {
  const lifeline = new Socket({ fd: LIFELINE_FD, readable: true, writable: false });
  lifeline.on('error', () => lifeline.destroy());
  lifeline.once('close', () => {
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), END_WITHIN_MS).unref();
  });
  lifeline.resume().unref();
}

// A thread has the flags of its process, and its process watches already.
if (isMainThread) endWithParent();
