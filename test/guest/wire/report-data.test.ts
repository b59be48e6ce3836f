import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { digest } from '../../../guest/wire/digest.ts';
import { type Measurement, osImageHash } from '../../../guest/wire/measurement.ts';
import {
  DOMAIN,
  reportData,
  type ScoreBinding,
  scorePreimage,
  scoreReportData,
} from '../../../guest/wire/report-data.ts';

interface ScoreVector {
  preimage: {
    agent_hash: string;
    canonical_measurement: Measurement;
    eval_run_id: string;
    score_nonce: string;
    scores_digest: string;
    task_ids: string[];
  };
  canonical_length: number;
  report_data: string;
}
interface KeyReleaseVector {
  preimage: {
    domain: string;
    schema_version: number;
    eval_run_id: string;
    key_release_nonce: string;
    ra_tls_spki_digest: string;
  };
  canonical_length: number;
  report_data: string;
}
const vectors = JSON.parse(
  readFileSync(new URL('../../vectors/report-data.json', import.meta.url), 'utf8'),
) as { score: ScoreVector[]; key_release_v2: KeyReleaseVector[] };

const bindingOf = ({ preimage }: ScoreVector): ScoreBinding => ({
  agentHash: preimage.agent_hash,
  measurement: preimage.canonical_measurement,
  evalRunId: preimage.eval_run_id,
  scoreNonce: preimage.score_nonce,
  scoresDigest: preimage.scores_digest,
  taskIds: preimage.task_ids,
});

describe('score domain', () => {
  it.each(vectors.score)('vector of $canonical_length bytes', (vector) => {
    const binding = bindingOf(vector);
    expect(scorePreimage(binding)).toEqual(vector.preimage);
    expect(encodeCanonical(scorePreimage(binding))).toHaveLength(vector.canonical_length);
    expect(scoreReportData(binding).toString('hex')).toBe(vector.report_data);
  });

  it('changes with every field that it binds', () => {
    const [vector] = vectors.score;
    if (!vector) throw new Error('no vector');
    const binding = bindingOf(vector);
    const changes: Partial<ScoreBinding>[] = [
      { agentHash: '0'.repeat(64) },
      { evalRunId: 'x' },
      { scoreNonce: 'x' },
      { scoresDigest: '0'.repeat(64) },
      { taskIds: ['task-a'] },
      ...Object.keys(binding.measurement).map((key) => ({
        measurement: { ...binding.measurement, [key]: '0' },
      })),
    ];
    const seen = new Set(changes.map((change) => scoreReportData({ ...binding, ...change }).toString('hex')));
    expect(seen.size).toBe(changes.length);
    expect(seen.has(vector.report_data)).toBe(false);
  });
});

/** The reference's. A key is only ever released against version 3, which also binds the TLS channel (spec/01). */
describe('key-release domain, version 2', () => {
  it.each(vectors.key_release_v2)('vector for $preimage.eval_run_id', ({ preimage, ...vector }) => {
    expect(preimage).toMatchObject({ domain: DOMAIN.keyRelease, schema_version: 2 });
    expect(encodeCanonical(preimage)).toHaveLength(vector.canonical_length);
    expect(reportData(preimage).toString('hex')).toBe(vector.report_data);
  });
});

describe('reportData', () => {
  it('is the digest and 32 zero bytes, 64 in all', () => {
    const preimage = { domain: DOMAIN.score };
    expect(reportData(preimage).toString('hex')).toBe(digest(preimage) + '0'.repeat(64));
  });

  it('has three domains and no two alike', () => {
    expect(new Set(Object.values(DOMAIN)).size).toBe(3);
  });
});

describe('osImageHash', () => {
  it('is the SHA-256 of the raw registers', () => {
    const [vector] = vectors.score;
    if (!vector) throw new Error('no vector');
    const measurement = vector.preimage.canonical_measurement;
    expect(osImageHash(measurement)).toBe(measurement.os_image_hash);
  });
});
