import { timingSafeEqual } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import type { KeyProvider, Measurement, VmShape } from '../wire/measurement.ts';
import type { EvalPlan } from '../wire/plan.ts';
import { scoreReportData } from '../wire/report-data.ts';
import type { Attestation } from '../wire/result.ts';
import type { GuestAgent, RawQuote } from './dstack.ts';
import { parseEventLog } from './event-log.ts';
import { cutToDeclaredLength, hasIntelSeam, isDebugTd, parseQuote, type TdxQuote } from './quote.ts';
import { measurementOf, verifyReplay } from './registers.ts';
import { type RuntimeClaims, readRuntimeClaims, verifyMrConfigId } from './runtime-claims.ts';
import { parseVmConfig } from './vm-config.ts';

/** What this guest's own evidence must show. */
interface EvidenceExpectation {
  measurement: Measurement;
  keyProvider: KeyProvider;
  vmShape: VmShape;
  /** 64 bytes. */
  reportData: Buffer;
}

/**
 * The file system that holds the VM's data is ext4: the only one whose encryption covers all of it here.
 * @throws storage_fs_not_ext4.
 */
export function verifyStorageFs(claims: Pick<RuntimeClaims, 'storageFs'>): void {
  if (claims.storageFs === 'ext4') return;
  throw new EvaluatorError(
    'storage_fs_not_ext4',
    `event log, storage-fs: ${JSON.stringify(claims.storageFs)}; deploy with storage_fs "ext4"`,
  );
}

function verifyTd(quote: TdxQuote): void {
  if (!hasIntelSeam(quote)) {
    throw new EvaluatorError('seam_signer_invalid', "own quote: the host's TDX module is not Intel's");
  }
  if (isDebugTd(quote)) {
    throw new EvaluatorError('td_debug', 'own quote: this TD runs in debug mode; deploy without it');
  }
}

function verifyMeasurement(actual: Measurement, planned: Measurement): void {
  const fields = Object.keys(planned) as (keyof Measurement)[];
  const differing = fields.filter((field) => actual[field] !== planned[field]);
  if (differing.length === 0) return;
  throw new EvaluatorError(
    'measurement_not_planned',
    `own quote: ${differing.join(', ')} not as planned; deploy the image that the plan names`,
  );
}

function verifyKeyProvider(actual: KeyProvider, planned: KeyProvider): void {
  if (actual.name === planned.name && actual.id === planned.id) return;
  throw new EvaluatorError(
    'key_provider_not_planned',
    `own event log: key provider ${JSON.stringify(actual.name)} with another name or id than the plan's`,
  );
}

function verifyVmShape(actual: VmShape, planned: VmShape): void {
  if (actual.vcpu === planned.vcpu && actual.memory_mb === planned.memory_mb) return;
  throw new EvaluatorError(
    'vm_shape_mismatch',
    `own vm_config: ${actual.vcpu} vCPU and ${actual.memory_mb} MiB, planned ${planned.vcpu} and ${planned.memory_mb}`,
  );
}

/**
 * Brings the guest's own evidence into the form that travels, after every check that a verifier can make
 * without collateral, in its order (spec/04): what it would refuse is refused here, with the reason at hand.
 * @throws quote_malformed, seam_signer_invalid, td_debug, event_* and event_log_*, key_provider_without_id, mr_config_id_mismatch,
 * storage_fs_not_ext4, measurement_not_planned, key_provider_not_planned, vm_config_invalid,
 * vm_shape_mismatch, report_data_mismatch.
 */
export function checkOwnEvidence(raw: RawQuote, expected: EvidenceExpectation): Attestation {
  const quoteBytes = cutToDeclaredLength(raw.quote);
  const quote = parseQuote(quoteBytes);
  verifyTd(quote);
  const events = parseEventLog(raw.eventLog);
  verifyReplay(quote, events);
  const claims = readRuntimeClaims(events);
  verifyMrConfigId(quote, claims.composeHash);
  verifyStorageFs(claims);
  const measurement = measurementOf(quote, claims);
  verifyMeasurement(measurement, expected.measurement);
  verifyKeyProvider(claims.keyProvider, expected.keyProvider);
  const vmShape = parseVmConfig(raw.vmConfig);
  verifyVmShape(vmShape, expected.vmShape);
  if (!timingSafeEqual(quote.reportData, expected.reportData)) {
    throw new EvaluatorError('report_data_mismatch', 'own quote: its report data is not what was asked for');
  }
  return {
    tdx_quote: quoteBytes.toString('hex'),
    event_log: events,
    report_data: expected.reportData.toString('hex'),
    measurement,
    vm_config: vmShape,
  };
}

/**
 * One fresh quote over this run's scores, checked before it is used. The report data is made with the plan's
 * measurement; that it is also the measurement of the quote is checked on the quote itself.
 * @param input taskIds strictly ascending; scoresDigest is the digest of the score record.
 * @throws guest_agent_*, and all that `checkOwnEvidence` throws.
 */
export async function attestScore(input: {
  agent: GuestAgent;
  plan: EvalPlan;
  agentHash: string;
  scoresDigest: string;
  taskIds: readonly string[];
}): Promise<Attestation> {
  const { plan, agentHash, scoresDigest, taskIds } = input;
  const { measurement, key_provider: keyProvider, vm_shape: vmShape } = plan.eval_app;
  const reportData = scoreReportData({
    agentHash,
    measurement,
    evalRunId: plan.eval_run_id,
    scoreNonce: plan.score_nonce,
    scoresDigest,
    taskIds,
  });
  const raw = await input.agent.getQuote(reportData);
  return checkOwnEvidence(raw, { measurement, keyProvider, vmShape, reportData });
}
