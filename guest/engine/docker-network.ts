import { DEADLINES_MS } from './deadline.ts';
import type { Dial } from './dial.ts';
import { parseClosedNetwork, parseId } from './docker-answers.ts';
import { segment } from './docker-paths.ts';
import type { Engine } from './port.ts';

type Networks = Pick<
  Engine,
  'createNetwork' | 'createInternalNetwork' | 'connect' | 'disconnect' | 'removeNetwork'
>;
type Call = keyof Networks;

/** The engine's networks. */
export function networkCalls(dial: Dial): Networks {
  const ask = (call: Call, of: string, method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) =>
    dial.json({
      subject: { call, of },
      deadlineMs: DEADLINES_MS[call],
      method,
      path,
      ...(body === undefined ? {} : { body }),
    });

  return {
    async createNetwork(name, labels) {
      const body = {
        Name: name,
        Driver: 'bridge',
        CheckDuplicate: true,
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
        Labels: labels,
      };
      return parseId('createNetwork', await ask('createNetwork', name, 'POST', '/networks/create', body));
    },

    async createInternalNetwork(name, subnet, labels) {
      const body = {
        Name: name,
        Driver: 'bridge',
        CheckDuplicate: true,
        Internal: true,
        EnableIPv6: false,
        IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
        Options: {
          'com.docker.network.bridge.enable_icc': 'true',
          // The bridge gets no address: an internal network would else reach every port of the host.
          'com.docker.network.bridge.inhibit_ipv4': 'true',
        },
        Labels: labels,
      };
      const made = await ask('createInternalNetwork', name, 'POST', '/networks/create', body);
      const id = parseId('createInternalNetwork', made);
      parseClosedNetwork(await ask('createInternalNetwork', name, 'GET', `/networks/${segment(id)}`));
      return id;
    },

    async connect(network, containerId, address) {
      const body = { Container: containerId, EndpointConfig: { IPAMConfig: { IPv4Address: address } } };
      await ask('connect', containerId, 'POST', `/networks/${segment(network)}/connect`, body);
    },

    async disconnect(network, containerId) {
      const body = { Container: containerId, Force: true };
      await ask('disconnect', containerId, 'POST', `/networks/${segment(network)}/disconnect`, body);
    },

    async removeNetwork(id) {
      await ask('removeNetwork', id, 'DELETE', `/networks/${segment(id)}`);
    },
  };
}
