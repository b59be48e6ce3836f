import type { Socket } from 'node:net';

export interface ConnectionCaps {
  total: number;
  perAddress: number;
}

/**
 * Counts open connections, all and by address, so that one peer cannot take every place. Told of each before
 * its handshake: a refused one costs no more than its accept.
 */
export class Connections {
  readonly #caps: ConnectionCaps;
  readonly #open = new Set<Socket>();
  readonly #byAddress = new Map<string, number>();

  constructor(caps: ConnectionCaps) {
    this.#caps = caps;
  }

  /** Takes a place until the socket closes; without one left the socket is destroyed. */
  admit(socket: Socket): 'admitted' | 'refused' {
    const address = socket.remoteAddress ?? '';
    const held = this.#byAddress.get(address) ?? 0;
    if (this.#open.size >= this.#caps.total || held >= this.#caps.perAddress) {
      socket.destroy();
      return 'refused';
    }
    this.#open.add(socket);
    this.#byAddress.set(address, held + 1);
    socket.once('close', () => {
      this.#open.delete(socket);
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left === 0) this.#byAddress.delete(address);
      else this.#byAddress.set(address, left);
    });
    return 'admitted';
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
