import { describe, expect, it } from 'vitest';
import type { GuestAgent, RawQuote } from '../../../guest/attest/dstack.ts';
import { parseEventLog, replay, runtimeEventDigest } from '../../../guest/attest/event-log.ts';
import { attestScore } from '../../../guest/attest/evidence.ts';
import { parseQuote } from '../../../guest/attest/quote.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { scoreReportData } from '../../../guest/wire/report-data.ts';
import { attestationSchema } from '../../../guest/wire/result.ts';
import type { EventLogEntry } from '../../../simulator/event-log.ts';
import type { Fault } from '../../../simulator/faults.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { signedPlan, testPlatform } from '../../support/valid-result.ts';

const platform = await testPlatform();
const { plan } = signedPlan(platform);
const scores = { agentHash: 'f0'.repeat(32), scoresDigest: '9a'.repeat(32), taskIds: ['task-a', 'task-b'] };
const RTMR3_OFFSET = 520;

interface Answer {
  quote: Buffer;
  eventLog: readonly EventLogEntry[];
  vmConfig: string;
}

/** A guest agent on `machine` whose honest answer `edit` may change. */
function agentOn(machine: Platform, edit: (answer: Answer) => Partial<Answer>) {
  const asked: Buffer[] = [];
  const agent: Pick<GuestAgent, 'getQuote'> = {
    getQuote: (reportData): Promise<RawQuote> => {
      asked.push(reportData);
      const { vcpu, memory_mb } = machine.vmShape;
      const honest: Answer = {
        quote: machine.quote(reportData, { version: 4 }),
        eventLog: machine.eventLog,
        vmConfig: JSON.stringify({ cpu_count: vcpu, memory_size: memory_mb * 1024 * 1024 }),
      };
      const answer = { ...honest, ...edit(honest) };
      return Promise.resolve({ ...answer, eventLog: JSON.stringify(answer.eventLog) });
    },
  };
  return { agent: agent as GuestAgent, asked };
}

const attest = (agent: GuestAgent, order: EvalPlan) => attestScore({ agent, plan: order, ...scores });

function patched(quote: Buffer, offset: number, bytes: Buffer): Buffer {
  const copy = Buffer.from(quote);
  bytes.copy(copy, offset);
  return copy;
}

/** The answer with other runtime events, in a quote whose RTMR3 they replay to: as another boot would give. */
function rebooted({ quote, eventLog }: Answer, edit: (runtime: EventLogEntry[]) => EventLogEntry[]) {
  const events = [...eventLog.filter((e) => e.imr !== 3), ...edit(eventLog.filter((e) => e.imr === 3))];
  const [, , , rtmr3] = replay(parseEventLog(events));
  return { quote: patched(quote, RTMR3_OFFSET, Buffer.from(rtmr3, 'hex')), eventLog: events };
}

function withPayload(events: EventLogEntry[], name: string, payload: string): EventLogEntry[] {
  const bytes = Buffer.from(payload);
  const digest = runtimeEventDigest(name, bytes);
  const event_payload = bytes.toString('hex');
  return events.map((event) => (event.event === name ? { ...event, digest, event_payload } : event));
}

const code = (name: string) => expect.objectContaining({ code: name, fault: 'attestation' });

describe('attestScore', () => {
  it('binds the scores to the plan in one fresh quote', async () => {
    const { agent, asked } = agentOn(platform, () => ({}));
    const attestation = await attest(agent, plan);
    const expected = scoreReportData({
      ...scores,
      measurement: platform.measurement,
      evalRunId: plan.eval_run_id,
      scoreNonce: plan.score_nonce,
    });
    expect(asked).toEqual([expected]);
    expect(parseQuote(Buffer.from(attestation.tdx_quote, 'hex')).reportData).toEqual(expected);
    expect(attestation).toEqual({
      tdx_quote: expect.stringMatching(/^0400020081/),
      event_log: parseEventLog(platform.eventLog),
      report_data: expected.toString('hex'),
      measurement: platform.measurement,
      vm_config: platform.vmShape,
    });
  });

  it.each<[string, (answer: Answer) => Partial<Answer>]>([
    ['zero bytes after the quote', ({ quote }) => ({ quote: Buffer.concat([quote, Buffer.alloc(70)]) })],
    [
      'blank runtime digests',
      ({ eventLog }) => ({ eventLog: eventLog.map((e) => (e.imr === 3 ? { ...e, digest: '' } : e)) }),
    ],
  ])('brings %s into the form that travels', async (_, edit) => {
    const attestation = await attest(agentOn(platform, edit).agent, plan);
    expect(attestationSchema.safeParse(attestation).success).toBe(true);
    expect(attestation.event_log).toEqual(parseEventLog(platform.eventLog));
    expect(attestation.tdx_quote).not.toMatch(/(?:00){70}$/);
  });

  it.each<[string, Fault, string]>([
    ['a debug TD', { name: 'debug-td' }, 'td_debug'],
    ['another MRTD', { name: 'wrong-measurement' }, 'measurement_not_planned'],
    ['zfs', { name: 'storage-zfs' }, 'storage_fs_not_ext4'],
  ])('refuses %s', async (_, fault, expected) => {
    const machine = await testPlatform({ faults: [fault] });
    const { plan: order } = signedPlan(machine);
    await expect(attest(agentOn(machine, () => ({})).agent, order)).rejects.toThrow(code(expected));
  });

  it.each<[string, string, (answer: Answer) => Partial<Answer>]>([
    ['a truncated quote', 'quote_malformed', ({ quote }) => ({ quote: quote.subarray(0, -1) })],
    [
      'other bytes after the quote',
      'quote_malformed',
      ({ quote }) => ({ quote: Buffer.concat([quote, Buffer.of(1)]) }),
    ],
    [
      'a foreign TDX module',
      'seam_signer_invalid',
      ({ quote }) => ({ quote: patched(quote, 112, Buffer.of(1)) }),
    ],
    [
      'a log without its last firmware event',
      'event_log_replay_mismatch',
      ({ eventLog }) => ({ eventLog: eventLog.toSpliced(0, 1) }),
    ],
    [
      'a quote of another time',
      'report_data_mismatch',
      () => ({ quote: platform.quote(Buffer.alloc(64, 7), { version: 4 }) }),
    ],
    [
      'zero report data',
      'report_data_mismatch',
      () => ({ quote: platform.quote(Buffer.alloc(64), { version: 4 }) }),
    ],
    [
      'a doubled event',
      'event_duplicate',
      (a) => rebooted(a, (e) => [...e.filter((x) => x.event === 'app-id'), ...e]),
    ],
    [
      'an event after system-ready',
      'event_order',
      (a) => rebooted(a, (e) => [...e, ...e.filter((x) => x.event === 'boot-mr-done')]),
    ],
    [
      'no instance id',
      'event_missing',
      (a) => rebooted(a, (e) => e.filter((x) => x.event !== 'instance-id')),
    ],
    [
      'another compose',
      'mr_config_id_mismatch',
      (a) => rebooted(a, (e) => withPayload(e, 'compose-hash', 'c'.repeat(32))),
    ],
    [
      'a KMS of the host',
      'key_provider_not_planned',
      (a) => rebooted(a, (e) => withPayload(e, 'key-provider', '{"name":"kms","id":"ab"}')),
    ],
    ['no KMS', 'key_provider_without_id', (a) => rebooted(a, (e) => withPayload(e, 'key-provider', 'none'))],
    ['more memory', 'vm_shape_mismatch', () => ({ vmConfig: '{"vcpu":4,"memory_mb":16384}' })],
    ['fewer CPUs', 'vm_shape_mismatch', () => ({ vmConfig: '{"vcpu":2,"memory_mb":8192}' })],
    ['no shape', 'vm_config_invalid', () => ({ vmConfig: '{}' })],
  ])('refuses %s', async (_, expected, edit) => {
    await expect(attest(agentOn(platform, edit).agent, plan)).rejects.toThrow(code(expected));
  });

  it.each(['mrtd', 'rtmr0', 'rtmr1', 'rtmr2', 'compose_hash', 'os_image_hash'] as const)(
    'refuses, by name, a machine whose %s is not the plan’s',
    async (field) => {
      const measurement = {
        ...platform.measurement,
        [field]: platform.measurement[field].replace(/./g, 'a'),
      };
      const order = { ...plan, eval_app: { ...plan.eval_app, measurement } };
      await expect(attest(agentOn(platform, () => ({})).agent, order)).rejects.toThrow(
        expect.objectContaining({ code: 'measurement_not_planned', message: expect.stringContaining(field) }),
      );
    },
  );

  it('refuses a key provider of another name with the plan’s id', async () => {
    const key_provider = { ...plan.eval_app.key_provider, name: 'local' };
    const order = { ...plan, eval_app: { ...plan.eval_app, key_provider } };
    await expect(attest(agentOn(platform, () => ({})).agent, order)).rejects.toThrow(
      code('key_provider_not_planned'),
    );
  });
});
