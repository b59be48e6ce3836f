import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { DEADLINES_MS } from './deadline.ts';
import type { Dial } from './dial.ts';
import type { OwnedObject } from './port.ts';

const labels = z.record(z.string(), z.string()).nullish();
const identified = z.array(z.object({ Id: z.string(), Labels: labels }));
const volumes = z.object({ Volumes: z.array(z.object({ Name: z.string(), Labels: labels })).nullish() });

/** Every container (in any state), volume, network and image that carries the label `label`, any value. */
export async function listOwned(dial: Dial, label: string): Promise<OwnedObject[]> {
  const filters = JSON.stringify({ label: [label] });
  const list = (of: OwnedObject['kind'], path: string, query: Record<string, string>) =>
    dial.json({
      subject: { call: 'listOwned', of },
      deadlineMs: DEADLINES_MS.listOwned,
      method: 'GET',
      path,
      query: { ...query, filters },
    });
  const [containerList, volumeList, networkList, imageList] = await Promise.all([
    list('container', '/containers/json', { all: 'true' }),
    list('volume', '/volumes', {}),
    list('network', '/networks', {}),
    list('image', '/images/json', {}),
  ]);
  return [
    ...parse(identified, containerList).map((raw) => owned('container', raw.Id, raw.Labels)),
    ...(parse(volumes, volumeList).Volumes ?? []).map((raw) => owned('volume', raw.Name, raw.Labels)),
    ...parse(identified, networkList).map((raw) => owned('network', raw.Id, raw.Labels)),
    ...parse(identified, imageList).map((raw) => owned('image', raw.Id, raw.Labels)),
  ];
}

function owned(kind: OwnedObject['kind'], id: string, raw: z.infer<typeof labels>): OwnedObject {
  return { kind, id, labels: raw ?? {} };
}

function parse<T>(schema: z.ZodType<T>, raw: unknown): T {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  throw new EvaluatorError('engine_error', "listOwned: the engine's answer has another shape");
}
