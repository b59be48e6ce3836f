import { X509Certificate } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { GuestAgent, TlsKey, TlsKeyRequest } from '../../../guest/attest/dstack.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { clientIdentity } from '../../../guest/golden/ra-tls.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { goldenMachine, sealedPlan, testIdentity, testSteps } from '../../support/golden-guest.ts';
import { serverIdentity } from '../../support/key-server.ts';
import { rejectionCode } from '../../support/throws.ts';

/** The machine's own agent, which also tells what it was asked for and gave. */
async function watched(refuse: (request: TlsKeyRequest) => EvaluatorError | null = () => null) {
  const { agent: real, platform } = await goldenMachine();
  const asked: TlsKeyRequest[] = [];
  const given: TlsKey[] = [];
  const agent: GuestAgent = {
    ...real,
    getTlsKey: async (request) => {
      asked.push(request);
      const refusal = refuse(request);
      if (refusal) throw refusal;
      const key = await real.getTlsKey(request);
      given.push(key);
      return key;
    },
  };
  const { caPem } = await serverIdentity('127.0.0.1');
  const server = { origin: 'https://127.0.0.1:1', caPem, received: [], connections: () => 0 };
  return { agent, asked, given, plan: sealedPlan(platform, server).plan };
}

describe('clientIdentity', () => {
  it('asks for a client certificate within the plan’s window', async () => {
    const { agent, asked, given, plan } = await watched();
    const identity = await testIdentity(agent, plan);
    expect(asked).toEqual([
      {
        subject: 'cvm-evaluator-guest',
        altNames: [],
        usages: ['client'],
        validity: { notBefore: plan.issued_at_ms / 1000, notAfter: plan.expires_at_ms / 1000 },
      },
    ]);
    const leaf = new X509Certificate(given[0]?.certificateChainPem[0] ?? '');
    expect([Date.parse(leaf.validFrom), Date.parse(leaf.validTo)]).toEqual([
      plan.issued_at_ms,
      plan.expires_at_ms,
    ]);
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(identity.spkiDigest).toBe(sha256Hex(leaf.publicKey.export({ format: 'der', type: 'spki' })));
  });

  it('is valid at once under a plan that was issued between two seconds', async () => {
    const { agent, asked, plan } = await watched();
    await testIdentity(agent, { ...plan, issued_at_ms: plan.issued_at_ms + 700 });
    expect(asked[0]?.validity?.notBefore).toBe(plan.issued_at_ms / 1000);
  });

  it('leaves the dates to an agent that cannot set them', async () => {
    const old = (request: TlsKeyRequest) =>
      request.validity && new EvaluatorError('guest_agent_error', 'Version: Service not found');
    const { agent, asked, plan } = await watched(old);
    await testIdentity(agent, plan);
    expect(asked.map(({ validity }) => validity === null)).toEqual([false, true]);
  });

  it.each(['guest_agent_timeout', 'guest_agent_unreachable', 'guest_agent_malformed'] as const)(
    'asks only once when the agent fails with %s',
    async (code) => {
      const { agent, asked, plan } = await watched(() => new EvaluatorError(code, 'no'));
      expect(await rejectionCode(testIdentity(agent, plan))).toBe(code);
      expect(asked).toHaveLength(1);
    },
  );

  it('shows no key to whoever prints it', async () => {
    const { agent, given, plan } = await watched();
    const identity = await testIdentity(agent, plan);
    const secret = given[0]?.privateKeyPem.split('\n')[1] ?? '';
    expect(secret.length).toBeGreaterThan(40);
    const shown = inspect(identity, { depth: 9, showHidden: true }) + JSON.stringify(identity);
    expect(shown).not.toContain(secret);
  });

  it('does not wait for a hung agent', async () => {
    const { agent } = await goldenMachine([{ name: 'hung-call', method: 'GetTlsKey' }], 60_000);
    const { plan } = await watched();
    const { steps, marks } = testSteps({ tls_key: 50 });
    expect(await rejectionCode(clientIdentity({ agent, plan, steps }))).toBe('unlock_timeout');
    expect(marks).toEqual(['tls_key begin']);
  });
});
