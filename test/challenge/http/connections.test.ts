import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Connections } from '../../../challenge/http/connections.ts';

class Peer extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort: number;
  destroyed = false;

  constructor(remoteAddress: string, remotePort: number) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

it('counts an IPv6 /64 as one address, and a mapped IPv4 address as itself', () => {
  const connections = new Connections({ total: 10, perAddress: 2 });
  const admit = (...addresses: string[]) =>
    addresses.map((address, i) => connections.admit(new Peer(address, i) as unknown as Socket));
  expect(admit('2001:db8::1', '2001:db8:0:0:ffff::2', '2001:db8::3', '2001:db8:0:1::1')).toEqual([
    'admitted',
    'admitted',
    'refused',
    'admitted',
  ]);
  expect(admit('192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1', '::ffff:192.0.2.2')).toEqual([
    'admitted',
    'admitted',
    'refused',
    'admitted',
  ]);
});

it('never holds more than its caps, whoever comes, goes or is trusted', () => {
  const caps = { total: 5, perAddress: 2 };
  const act = fc.oneof(
    fc.record({ kind: fc.constant('come' as const), address: fc.integer({ min: 0, max: 3 }) }),
    fc.record({ kind: fc.constantFrom('go' as const, 'trust' as const), index: fc.nat(20) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const connections = new Connections(caps);
      const peers: Peer[] = [];
      const trusted = new Set<Peer>();
      for (const one of acts) {
        if (one.kind === 'come') {
          const peer = new Peer(`10.0.0.${one.address}`, peers.length + 1);
          connections.admit(peer as unknown as Socket);
          peers.push(peer);
        } else {
          const peer = peers[one.index];
          if (!peer || peer.destroyed) continue;
          if (one.kind === 'trust') {
            connections.trust(peer);
            trusted.add(peer);
          } else {
            peer.destroy();
            peer.emit('close');
            trusted.delete(peer);
          }
        }
        const open = peers.filter(({ destroyed }) => !destroyed);
        expect(open.length).toBeLessThanOrEqual(caps.total);
        for (const { remoteAddress } of open) {
          const same = open.filter((other) => other.remoteAddress === remoteAddress);
          expect(same.length).toBeLessThanOrEqual(caps.perAddress);
        }
        // Nobody who was trusted is thrown out.
        for (const peer of trusted) expect(peer.destroyed).toBe(false);
      }
      for (const peer of peers) peer.emit('close');
      const fresh = Array.from({ length: caps.total }, (_, i) => new Peer(`10.0.1.${i}`, 999));
      for (const peer of fresh) expect(connections.admit(peer as unknown as Socket)).toBe('admitted');
    }),
  );
});
