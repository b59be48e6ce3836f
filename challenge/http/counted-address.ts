import { isIPv6 } from 'node:net';

const MAPPED = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/;

/** As the URL standard writes it: lower case, no leading zeros, the longest run of zeros as `::`, no dots. */
const canonical = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

function groupsOf(address: string): string[] {
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  return [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
}

/**
 * Under which name a peer's connections are counted: an IPv4 address itself, also when IPv6 maps it; of an IPv6
 * address the /64, which is what one subscriber has at the least (RFC 6177). Zones are left out; what is no
 * address is its own name.
 */
export function countedAddress(remoteAddress: string): string {
  const address = remoteAddress.replace(/%.*$/, '');
  if (!isIPv6(address)) return address;
  const plain = canonical(address);
  const [, high, low] = MAPPED.exec(plain) ?? [];
  if (high === undefined || low === undefined) return `${groupsOf(plain).slice(0, 4).join(':')}::/64`;
  const octets = [high, low].map((group) => Number.parseInt(group, 16)).flatMap((n) => [n >> 8, n & 0xff]);
  return octets.join('.');
}
