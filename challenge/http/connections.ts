import type { Socket } from 'node:net';
import { countedAddress } from './counted-address.ts';

export interface ConnectionCaps {
  total: number;
  /** Of an IPv4 address, or of an IPv6 /64. */
  perAddress: number;
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;
const nameOf = ({ remoteAddress, remotePort }: Peer): string => `${remoteAddress} ${remotePort}`;
const addressOf = ({ remoteAddress }: Peer): string => countedAddress(remoteAddress ?? '');

/**
 * Counts open connections, all and by address, so that no peer takes every place. Told of each before its
 * handshake: a refused one costs no more than its accept. When all places are taken, the stranger that has
 * waited longest makes room: whoever has shown what lets him in stays, whatever a crowd without it does.
 */
export class Connections {
  readonly #caps: ConnectionCaps;
  readonly #open = new Set<Socket>();
  /** Of peers that have not been trusted yet, oldest first. */
  readonly #strangers = new Map<string, Socket>();
  readonly #byAddress = new Map<string, number>();

  constructor(caps: ConnectionCaps) {
    this.#caps = caps;
  }

  /** Takes a place until the socket closes; without one left the socket is destroyed. */
  admit(socket: Socket): 'admitted' | 'refused' {
    const address = addressOf(socket);
    if ((this.#byAddress.get(address) ?? 0) >= this.#caps.perAddress || !this.#makeRoom()) {
      socket.destroy();
      return 'refused';
    }
    this.#open.add(socket);
    this.#strangers.set(nameOf(socket), socket);
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    const name = nameOf(socket);
    socket.once('close', () => this.#forget(socket, name, address));
    return 'admitted';
  }

  /** This peer keeps its place. */
  trust(peer: Peer): void {
    this.#strangers.delete(nameOf(peer));
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #makeRoom(): boolean {
    if (this.#open.size < this.#caps.total) return true;
    const [oldest] = this.#strangers;
    if (!oldest) return false;
    const [name, socket] = oldest;
    this.#forget(socket, name, addressOf(socket));
    socket.destroy();
    return true;
  }

  /** Once for each socket: when it makes room, or else when it closes. */
  #forget(socket: Socket, name: string, address: string): void {
    if (!this.#open.delete(socket)) return;
    this.#strangers.delete(name);
    const left = (this.#byAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, left);
  }
}
