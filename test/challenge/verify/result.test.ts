import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { failedCheck } from '../../../challenge/verify/checklist.ts';
import { RESULT_CHECKS, type ResultInput, verifyResult } from '../../../challenge/verify/result.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import type { Allowlist } from '../../../guest/wire/measurement.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { ed25519PublicHex } from '../../../guest/wire/plan-signature.ts';
import { encodeResult, type Result } from '../../../guest/wire/result.ts';
import { changedLeaves, changedShapes } from '../../support/leaves.ts';
import {
  resultFor,
  scoreRecord,
  signedPlan,
  type ValidResult,
  validResult,
} from '../../support/valid-result.ts';

let valid: ValidResult;
beforeAll(async () => {
  valid = await validResult();
});

/** `check: code`, or `verified`. */
async function outcome(overrides: Partial<ResultInput>): Promise<string> {
  const { verified, checks } = await verifyResult({ ...valid.input, ...overrides });
  const failed = failedCheck(checks);
  expect(verified).toBe(failed === undefined);
  return failed ? `${failed.name}: ${failed.code}` : 'verified';
}

const bytesOf = (document: unknown) => encodeCanonical(document);

describe('a RESULT', () => {
  it('verifies, every check made', async () => {
    const { verified, checks } = await verifyResult(valid.input);
    expect(verified).toBe(true);
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual(
      RESULT_CHECKS.map((name) => `${name} ok`),
    );
  });

  it('with any single leaf changed does not', async () => {
    const seen = new Map<string, string>();
    for (const { path, document } of changedLeaves(valid.result)) {
      const found = await outcome({ resultBytes: bytesOf(document) });
      expect(found, path).not.toBe('verified');
      expect(found, path).toMatch(/^\w+: \w+$/);
      seen.set(path, found);
    }
    // What each field answers to; a leaf of the record may be caught by its schema, its rules or its digest.
    const expected: Record<string, string> = {
      '.eval_run_id': 'result_ids: result_ids_mismatch',
      '.submission_id': 'result_ids: result_ids_mismatch',
      '.agent_hash': 'agent_hash: agent_hash_mismatch',
      '.scores_digest': 'scores_digest: scores_digest_mismatch',
      '.score_record.plan_digest': 'plan_digest: plan_digest_mismatch',
      '.score_record.mechanism_digest': 'mechanism_digest: mechanism_digest_mismatch',
      '.score_record.cache_digest': 'score_record: record_cache_mismatch',
      '.score_record.r': 'score_record: record_r_mismatch',
      '.score_record.tasks[0].reps[0].wall_ms': 'scores_digest: scores_digest_mismatch',
      '.score_record.tasks[0].completed': 'score_record: record_completed_mismatch',
      '.score_record.final.passed_tasks': 'score_record: record_final_mismatch',
      '.execution_proof.plan_digest': 'plan_digest: plan_digest_mismatch',
      '.execution_proof.image_digest': 'image_digest: image_digest_mismatch',
      '.execution_proof.attestation.report_data': 'attested_report_data: attested_report_data_mismatch',
      '.execution_proof.attestation.measurement.mrtd': 'attested_measurement: attested_measurement_mismatch',
      '.execution_proof.attestation.vm_config.vcpu': 'vm_shape: vm_shape_mismatch',
      '.execution_proof.attestation.event_log[0].digest': 'registers: event_log_replay_mismatch',
    };
    for (const [path, found] of Object.entries(expected)) expect(seen.get(path), path).toBe(found);
  });

  it('with a changed record and a digest to match still answers to its quote', async () => {
    const record = scoreRecord(valid.plan);
    record.machine.cpus += 1;
    const forged: Result = { ...resultFor(valid.platform, valid.plan, record) };
    forged.execution_proof.attestation.tdx_quote = valid.result.execution_proof.attestation.tdx_quote;
    expect(await outcome({ resultBytes: encodeResult(forged) })).toBe('report_data: report_data_mismatch');
  });

  it('with a member missing, added, dropped, repeated does not', async () => {
    for (const { path, document } of changedShapes(valid.result)) {
      expect(await outcome({ resultBytes: bytesOf(document) }), path).not.toBe('verified');
    }
  });

  it.each([
    ['a trailing newline', (text: string) => `${text}\n`],
    ['a space', (text: string) => text.replace(':', ': ')],
    ['a duplicate key', (text: string) => text.replace('{"agent_hash"', '{"agent_hash":"","agent_hash"')],
    ['2^53+1', (text: string) => text.replace('"r":3', '"r":9007199254740993')],
    ['1e400', (text: string) => text.replace('"r":3', '"r":1e400')],
    ['3.0', (text: string) => text.replace('"r":3', '"r":3.0')],
    ['nothing', () => ''],
  ])('with %s is not canonical', async (_name, edit) => {
    const resultBytes = Buffer.from(edit(valid.input.resultBytes.toString()));
    expect(await outcome({ resultBytes })).toMatch(/^result_canonical: json_/);
  });

  it('with a member named __proto__ is not of the schema', async () => {
    const text = valid.input.resultBytes.toString().replace('{"agent_hash"', '{"__proto__":{},"agent_hash"');
    expect(await outcome({ resultBytes: Buffer.from(text) })).toBe('result_schema: schema_invalid');
  });

  it("of another run is not this run's", async () => {
    const other = signedPlan(valid.platform, { score_nonce: 'score-nonce-2' });
    const resultBytes = encodeResult(resultFor(valid.platform, other.plan));
    expect(await outcome({ resultBytes })).toBe('plan_digest: plan_digest_mismatch');
  });
});

describe('a plan', () => {
  it('with any single leaf changed is refused', async () => {
    for (const { path, document } of changedLeaves(valid.plan)) {
      const found = await outcome({ planBytes: bytesOf(document) });
      expect(found, path).toMatch(/^plan_(document|signatures): \w+$/);
    }
  });

  it('of another signer, root or challenge is refused', async () => {
    const other = signedPlan(valid.platform);
    expect(await outcome({ planBytes: other.planBytes })).toBe('plan_signatures: signer_signature_invalid');
    const publicKey = ed25519PublicHex(generateKeyPairSync('ed25519').publicKey);
    const planRoot = { ...valid.planRoot, publicKey };
    expect(await outcome({ planRoot })).toBe('plan_signatures: signer_signature_invalid');
    const foreign = { ...valid.planRoot, challengeId: 'another' };
    expect(await outcome({ planRoot: foreign })).toBe('plan_signatures: plan_challenge_mismatch');
  });
});

describe('the allowlist', () => {
  const compared = (path: string) => /\.(measurement|key_provider)\./.test(path);

  it('compares every field of measurement and key provider, and nothing else', async () => {
    const { allowlist } = valid.input;
    for (const { path, document } of changedLeaves(allowlist)) {
      const found = await outcome({ allowlist: document as Allowlist });
      const expected = path.includes('key_provider') ? 'key_provider_not_allowed' : 'measurement_not_allowed';
      expect(found, path).toBe(compared(path) ? `measurement: ${expected}` : 'verified');
    }
  });
});

it('the mechanism is that of plan and record, to the byte', async () => {
  const mechanismBytes = Buffer.concat([valid.input.mechanismBytes, Buffer.from('\n# more\n')]);
  expect(await outcome({ mechanismBytes })).toBe('mechanism_digest: mechanism_digest_mismatch');
  expect(await outcome({ mechanismBytes: Buffer.from('&a [*a]') })).toMatch(/^mechanism_digest: /);
  expect(await outcome({ mechanismBytes: Buffer.from([0xff]) })).toBe('mechanism_digest: mechanism_invalid');
});

it('a plan that names another VM shape, image or KMS than what ran', async () => {
  const { platform } = valid;
  const { eval_app: app } = valid.plan;
  const cases: [Partial<EvalPlan['eval_app']>, string][] = [
    [{ key_provider: { name: 'phala', id: '00' } }, 'attested_measurement: attested_measurement_mismatch'],
    [{ vm_shape: { vcpu: 1, memory_mb: 1 } }, 'vm_shape: vm_shape_mismatch'],
    [{ measurement: { ...app.measurement, rtmr0: '1'.repeat(96) } }, 'report_data: report_data_mismatch'],
  ];
  for (const [change, expected] of cases) {
    const signed = signedPlan(platform, { eval_app: { ...app, ...change } });
    const resultBytes = encodeResult(resultFor(platform, signed.plan));
    expect(await outcome({ ...signed, resultBytes })).toBe(expected);
  }
});
