import type { TdxQuote } from '../../guest/attest/quote.ts';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import type { TcbInfo } from './collateral.ts';

type Levels = NonNullable<TcbInfo['tdxModuleIdentities']>[number]['tcbLevels'];

/** A TCB status, and the advisories that it is for. */
export interface TcbStanding {
  tcbStatus: string;
  advisoryIds: readonly string[];
}

/** What an outdated module makes of a platform that is of this status (Intel's TDX TCB evaluation). */
const WITH_OUTDATED_MODULE: Readonly<Record<string, string>> = {
  UpToDate: 'OutOfDate',
  SWHardeningNeeded: 'OutOfDate',
  ConfigurationNeeded: 'OutOfDateConfigurationNeeded',
  ConfigurationAndSWHardeningNeeded: 'OutOfDateConfigurationNeeded',
};

function refused(code: Code, problem: string): EvaluatorError {
  return new EvaluatorError(code, `quote: TDX module ${problem}`);
}

function identityOf(quote: TdxQuote, version: number, { tdxModuleIdentities }: TcbInfo) {
  const name = `TDX_${version.toString(16).padStart(2, '0')}`;
  const identity = tdxModuleIdentities?.find(({ id }) => id.toLowerCase() === name.toLowerCase());
  if (!identity) throw refused('tcb_level_unmatched', `${name}: the TCB info has no identity of it`);
  const [seam, mask, attributes] = [quote.seamAttributes, identity.attributesMask, identity.attributes].map(
    (hex) => BigInt(`0x${hex}`),
  ) as [bigint, bigint, bigint];
  if (identity.mrsigner.toLowerCase() !== quote.mrSignerSeam || (seam & mask) !== attributes) {
    throw refused('seam_signer_invalid', `${name}: another signer, or other attributes, than its identity`);
  }
  return identity;
}

function levelOf(svn: number, levels: Levels): Levels[number] {
  const level = levels.find(({ tcb }) => svn >= tcb.isvsvn);
  if (level) return level;
  throw refused('tcb_level_unmatched', `of SVN ${svn}: below every level of its identity`);
}

/**
 * The platform's standing with its TDX module's own: from module version 1 on (TDX 1.5) the TCB info has an
 * identity and levels for each version, which the library does not read.
 * @param quote byte 0 of its tee_tcb_svn is the module's SVN, byte 1 the module's version.
 * @throws tcb_level_unmatched, seam_signer_invalid, tcb_revoked.
 */
export function withTdxModule(quote: TdxQuote, tcbInfo: TcbInfo, platform: TcbStanding): TcbStanding {
  const [svn = 0, version = 0] = Buffer.from(quote.teeTcbSvn, 'hex');
  if (version === 0) return platform;
  const { tcbStatus: status, advisoryIDs = [] } = levelOf(svn, identityOf(quote, version, tcbInfo).tcbLevels);
  const advisoryIds = [...new Set([...platform.advisoryIds, ...advisoryIDs])];
  if (status === 'UpToDate') return { ...platform, advisoryIds };
  if (status !== 'OutOfDate') throw refused('tcb_revoked', `of SVN ${svn}: its TCB status is ${status}`);
  return { tcbStatus: WITH_OUTDATED_MODULE[platform.tcbStatus] ?? platform.tcbStatus, advisoryIds };
}
