import { HOLE, textsOf } from '../value.ts';
import type { Detector, Knowledge } from './context.ts';

const URL_START = /^\s*(?:https?|wss?|ftp|tcp|ssh|git):\/\/([^\s/?#"'<>]+)/i;
const CONNECTS = /(?:^|\.)(?:connect|connect_ex|sendto)$/;
const DIALS =
  /(?:^|\.)(?:create_connection|createConnection|HTTPSConnection|HTTPConnection|gethostbyname|getaddrinfo|lookup)$/;
const HOST = /^(?=.{4,253}$)(?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63}$/i;
const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1|0\.0\.0\.0)$/;

function hostOf(authority: string): string {
  const bare = authority.slice(authority.lastIndexOf('@') + 1);
  return bare.replace(/:\d*$/, '').toLowerCase();
}

/** True for a host that the rules list, or this machine itself. */
function isAllowedHost(host: string, { allowedHosts }: Knowledge): boolean {
  if (LOCAL.test(host)) return true;
  return allowedHosts.some((one) => (one.startsWith('*.') ? host.endsWith(one.slice(1)) : host === one));
}

/** A destination by name or address that the rules do not list. A host only known at run time is the model's. */
export const detectNetwork: Detector = (fact, knowledge) => {
  const foreign = (host: string) => !host.includes(HOLE) && !isAllowedHost(host, knowledge);
  const toForeign = (text: string) => {
    const authority = URL_START.exec(text)?.[1];
    return authority !== undefined && foreign(hostOf(authority));
  };
  const found = (() => {
    if (fact.kind === 'text') return textsOf(fact.value).some(toForeign);
    if (fact.kind !== 'call') return false;
    // A database's connect takes the name of a file; a socket's takes host and port together.
    const pairs = CONNECTS.test(fact.callee) ? fact.args.filter(({ items }) => items !== null) : [];
    const named = DIALS.test(fact.callee) ? fact.args : pairs;
    return named
      .flatMap((one) => textsOf(one))
      .some((text) => HOST.test(text) && foreign(text.toLowerCase()));
  })();
  return found ? ['network_destination_not_allowed'] : [];
};
