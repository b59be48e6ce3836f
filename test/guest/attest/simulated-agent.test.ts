import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectGuestAgent } from '../../../guest/attest/dstack.ts';
import { attestScore } from '../../../guest/attest/evidence.ts';
import { parseQuote } from '../../../guest/attest/quote.ts';
import { attestationSchema } from '../../../guest/wire/result.ts';
import { startGuestAgent } from '../../../simulator/agent-api.ts';
import type { Fault } from '../../../simulator/faults.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { NOW_MS, signedPlan, testPlatform } from '../../support/valid-result.ts';

const scores = { agentHash: 'f0'.repeat(32), scoresDigest: '9a'.repeat(32), taskIds: ['task-a', 'task-b'] };

let folder: string;
const stop: (() => Promise<void>)[] = [];

beforeEach(() => {
  folder = scratchFolder();
});
afterEach(async () => {
  for (const close of stop.splice(0)) await close();
});

async function connectTo(faults: readonly Fault[], deadlineMs: number) {
  const platform = await testPlatform({ faults });
  const socketPath = join(folder, 'dstack.sock');
  const { close } = await startGuestAgent({ socketPath, platform, faults, clock: () => NOW_MS });
  stop.push(close);
  return { platform, agent: connectGuestAgent({ socketPath, deadlineMs }) };
}

async function attestOn(faults: readonly Fault[], deadlineMs = 20_000) {
  const { platform, agent } = await connectTo(faults, deadlineMs);
  return attestScore({ agent, plan: signedPlan(platform).plan, ...scores });
}

describe('evidence from a whole machine', () => {
  it.each<[string, Fault[]]>([
    ['an honest agent', []],
    ['a slow agent', [{ name: 'slow-quote', ms: 200 }]],
    ['an agent that blanks runtime digests', [{ name: 'blank-digests' }]],
    ['an agent that writes 0x', [{ name: 'hex-prefix' }]],
    ['an agent that pads its quotes', [{ name: 'trailing-zeros', bytes: 70 }]],
    ['an agent with version 5 quotes', [{ name: 'quote-v5' }]],
  ])('is the same from %s', async (_, faults) => {
    const attestation = await attestOn(faults);
    expect(attestationSchema.safeParse(attestation).success).toBe(true);
    const quote = parseQuote(Buffer.from(attestation.tdx_quote, 'hex'));
    expect([quote.trailing.length, quote.reportData.toString('hex')]).toEqual([0, attestation.report_data]);
  });

  it.each<[string, Fault]>([
    ['td_debug', { name: 'debug-td' }],
    ['measurement_not_planned', { name: 'wrong-measurement' }],
    ['storage_fs_not_ext4', { name: 'storage-zfs' }],
    ['event_log_invalid', { name: 'empty-names' }],
  ])('is refused as %s', async (code, fault) => {
    await expect(attestOn([fault])).rejects.toThrow(expect.objectContaining({ code, fault: 'attestation' }));
  });

  it('is not waited for beyond the deadline', async () => {
    await expect(attestOn([{ name: 'hung-call', method: 'GetQuote' }], 100)).rejects.toThrow(
      expect.objectContaining({ code: 'guest_agent_timeout' }),
    );
  });
});

describe('the other calls of a whole machine', () => {
  it('tell what its quotes say', async () => {
    const { platform, agent } = await connectTo([], 20_000);
    const info = await agent.info();
    expect(info.registers).toEqual(platform.registers);
    expect(info.composeHash).toBe(platform.measurement.compose_hash);
  });

  it('give a key with a chain, within dates when asked', async () => {
    const { agent } = await connectTo([], 20_000);
    const notBefore = NOW_MS / 1000;
    const validity = { notBefore, notAfter: notBefore + 3600 };
    const key = await agent.getTlsKey({ subject: 'guest', altNames: [], usages: ['client'], validity });
    expect(key.certificateChainPem).toHaveLength(3);
  });
});
