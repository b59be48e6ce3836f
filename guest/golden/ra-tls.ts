import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { GuestAgent, TlsKey, TlsKeyRequest } from '../attest/dstack.ts';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { sha256Hex } from '../wire/digest.ts';
import type { EvalPlan } from '../wire/plan.ts';
import type { Steps } from './steps.ts';

/** Names the guest in its certificate; the quote inside is what proves anything. */
const SUBJECT = 'cvm-evaluator-guest';

/** What the guest shows to the challenge. Its private key lives in OpenSSL's memory alone. */
export interface ClientIdentity {
  /** Key, chain, and the plan's CA as the only issuer that is believed; TLS 1.3 alone. */
  context: SecureContext;
  /** SHA-256 of the leaf's SubjectPublicKeyInfo, hex. */
  spkiDigest: string;
}

async function getTlsKey(agent: GuestAgent, plan: EvalPlan): Promise<TlsKey> {
  const request = (validity: TlsKeyRequest['validity']) =>
    agent.getTlsKey({ subject: SUBJECT, altNames: [], usages: ['client'], validity });
  const planWindow = {
    // Rounded down: a certificate that is not yet valid in the plan's first second would be refused.
    notBefore: Math.floor(plan.issued_at_ms / 1000),
    notAfter: Math.floor(plan.expires_at_ms / 1000),
  };
  try {
    return await request(planWindow);
  } catch (error) {
    // Agents before 0.5.7 know no Version and set the dates themselves (spec/04).
    if (!isEvaluatorError(error, 'guest_agent_error')) throw error;
    return request(null);
  }
}

function secureContext(key: TlsKey, caPem: string): SecureContext {
  try {
    return createSecureContext({
      key: key.privateKeyPem,
      cert: key.certificateChainPem.map((pem) => `${pem.trim()}\n`).join(''),
      ca: caPem,
      minVersion: 'TLSv1.3',
      maxVersion: 'TLSv1.3',
    });
  } catch {
    // The cause is dropped: OpenSSL's errors may be about the key's bytes.
    throw new EvaluatorError('guest_agent_malformed', 'guest agent, GetTlsKey: its key or chain is unusable');
  }
}

/**
 * A fresh RA-TLS key for client authentication, by the guest agent; its certificate is valid within the plan's
 * window where the agent can set the dates.
 * @throws guest_agent_*, unlock_timeout.
 */
export async function clientIdentity(input: {
  agent: GuestAgent;
  plan: EvalPlan;
  steps: Steps;
}): Promise<ClientIdentity> {
  const key = await input.steps('tls_key', () => getTlsKey(input.agent, input.plan));
  const leaf = new X509Certificate(key.certificateChainPem[0]);
  return {
    context: secureContext(key, input.plan.server_ca_pem),
    spkiDigest: sha256Hex(leaf.publicKey.export({ format: 'der', type: 'spki' })),
  };
}
