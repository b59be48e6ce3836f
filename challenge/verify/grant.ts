import type { TdxQuote } from '../../guest/attest/quote.ts';
import type { RuntimeClaims } from '../../guest/attest/runtime-claims.ts';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import type { Grant, StoredStart } from '../ledger/grants.ts';
import { platformOf } from './ppid.ts';

/** What only the ledger knows about a run: nobody can check it from the RESULT alone. */
export interface GrantFile {
  /** Oldest first. */
  grants: readonly Grant[];
  started: StoredStart | null;
}

/** What a RESULT names and, verified, shows of the machine that made it. */
export interface GrantClaim {
  grantId: string | null;
  quote: TdxQuote;
  claims: RuntimeClaims;
}

function requireSame(code: Code, what: string, found: string, granted: string): void {
  if (found !== granted)
    throw new EvaluatorError(code, `result: another ${what} than the keys were given to`);
}

/**
 * The RESULT was made under the run's newest grant, whose agents started, by the machine that got its keys
 * (spec/07): no grant, no score.
 * @throws grant_missing, grant_superseded, grant_not_started, grant_app_mismatch, grant_instance_mismatch,
 *   grant_platform_mismatch.
 */
export function verifyGrant({ grantId, quote, claims }: GrantClaim, { grants, started }: GrantFile): void {
  const grant = grants.find((one) => one.grantId === grantId);
  if (!grant) throw new EvaluatorError('grant_missing', 'result: it names no grant of this run');
  if (grants.at(-1) !== grant) {
    throw new EvaluatorError('grant_superseded', 'result: a newer grant has taken the place of its own');
  }
  if (started?.grantId !== grantId) {
    throw new EvaluatorError('grant_not_started', 'result: nobody said that agents start under its grant');
  }
  requireSame('grant_app_mismatch', 'app-id', claims.appId, grant.appId);
  requireSame('grant_instance_mismatch', 'instance-id', claims.instanceId, grant.instanceId);
  requireSame('grant_platform_mismatch', 'platform', platformOf(quote), grant.platform);
}
