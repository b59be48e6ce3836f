import { isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countedAddress } from '../../../challenge/http/counted-address.ts';

describe('the name that an address is counted under', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:0.0.0.0', '0.0.0.0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8::2:3:4:5', '2001:db8:0:0::/64'],
    ['2001:db8:0:1::192.0.2.1', '2001:db8:0:1::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.1%1', '192.0.2.1'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
    // Only ::ffff:0:0/96 is IPv4 that was mapped.
    ['::fffe:192.0.2.1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['', ''],
  ])('%s is counted as "%s"', (address, name) => {
    expect(countedAddress(address)).toBe(name);
  });

  it('is the same for all of a /64 in whatever form, and another for another /64', () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    const four = fc.array(group, { minLength: 4, maxLength: 4 });
    const long = (groups: number[]) => groups.map((n) => n.toString(16).padStart(4, '0')).join(':');
    /** Its first run of zeros left out, if there is one. */
    const short = (groups: number[]) =>
      groups
        .map((n) => n.toString(16))
        .join(':')
        .replace(/(^|:)0(:0)*(:|$)/, '::');
    const isMapped = (groups: number[]) => groups.slice(0, 5).every((n) => n === 0) && groups[5] === 0xffff;
    fc.assert(
      fc.property(four, four, four, four, (prefix, other, host, neighbour) => {
        const [one, same] = [prefix.concat(host), prefix.concat(neighbour)];
        fc.pre(!isMapped(one) && !isMapped(same) && !isMapped(other.concat(host)));
        const name = countedAddress(long(one));
        expect(isIPv6(short(same))).toBe(true);
        expect(countedAddress(short(same))).toBe(name);
        expect(countedAddress(long(other.concat(host))) === name).toBe(long(other) === long(prefix));
      }),
    );
  });
});
