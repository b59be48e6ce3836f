import { describe, expect, it, onTestFinished } from 'vitest';
import { askChallenge, type ChallengeRequest } from '../../../guest/net/challenge-client.ts';
import { serverIdentity, startKeyServer } from '../../support/key-server.ts';
import { rejectionCode } from '../../support/throws.ts';

const OK = { status: 200, body: Buffer.from('{}') };

async function callTo(caHost: string, tls = {}): Promise<{ call: ChallengeRequest; seen: () => number }> {
  const server = await startKeyServer(() => OK, { tls: { requestCert: false, ...tls } });
  const { caPem } = await serverIdentity(caHost);
  const url = `${server.origin}/x`;
  return {
    call: { method: 'POST', url, token: 'the-token', caPem, body: Buffer.from('{}'), maxReplyBytes: 100 },
    seen: () => server.received.length,
  };
}

describe('askChallenge', () => {
  it('talks to a server of the plan’s CA', async () => {
    const { call } = await callTo('127.0.0.1');
    expect(await askChallenge(call)).toEqual(OK);
  });

  it('talks to no other, whatever the environment says', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const { call, seen } = await callTo('localhost');
    expect(await rejectionCode(askChallenge(call))).toBe('challenge_unreachable');
    expect(seen()).toBe(0);
  });

  it('talks TLS 1.3 only', async () => {
    const { call, seen } = await callTo('127.0.0.1', { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' });
    expect(await rejectionCode(askChallenge(call))).toBe('challenge_unreachable');
    expect(seen()).toBe(0);
  });

  it('reads no reply above its cap', async () => {
    const { call } = await callTo('127.0.0.1');
    expect(await rejectionCode(askChallenge({ ...call, maxReplyBytes: 1 }))).toBe('challenge_unreachable');
  });
});
