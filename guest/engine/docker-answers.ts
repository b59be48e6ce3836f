import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import type { ContainerState, EngineInfo, ImageInfo } from './port.ts';

const strings = z.record(z.string(), z.string()).nullish();

const infoAnswer = z.object({
  ServerVersion: z.string(),
  CgroupVersion: z.enum(['1', '2']),
  CgroupDriver: z.string(),
  NCPU: z.int(),
  MemTotal: z.int(),
  DockerRootDir: z.string(),
});

const versionAnswer = z.object({
  ApiVersion: z.string(),
  Components: z.array(z.object({ Name: z.string(), Version: z.string() })),
});

const imageAnswer = z.object({
  Id: z.string(),
  Architecture: z.string(),
  Os: z.string(),
  Size: z.int(),
  Config: z.object({
    WorkingDir: z.string().nullish(),
    Env: z.array(z.string()).nullish(),
    Volumes: z.record(z.string(), z.unknown()).nullish(),
    Labels: strings,
  }),
});

const containerAnswer = z.object({
  Id: z.string(),
  Image: z.string(),
  RestartCount: z.int(),
  State: z.object({
    Status: z.enum(['created', 'running', 'paused', 'restarting', 'removing', 'exited', 'dead']),
    Running: z.boolean(),
    Paused: z.boolean(),
    OOMKilled: z.boolean(),
    ExitCode: z.int(),
    Pid: z.int(),
    StartedAt: z.string(),
  }),
});

const idAnswer = z.object({ Id: z.string().min(1) });
const closedNetworkAnswer = z.object({ Internal: z.literal(true), EnableIPv6: z.literal(false) });
const exitAnswer = z.object({
  StatusCode: z.int(),
  Error: z.object({ Message: z.string() }).nullish(),
});
const execAnswer = z.object({ Running: z.boolean(), ExitCode: z.int().nullable(), Pid: z.int() });
const layerAnswer = z.object({ SizeRw: z.int().nonnegative().optional() });

/** Each parser throws `engine_error` when an answer has not the shape that the call promises. */
function parse<T>(call: string, schema: z.ZodType<T>, raw: unknown): T {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.join('.')).join(', ');
  throw new EvaluatorError('engine_error', `${call}: the engine's answer has another shape in: ${fields}`);
}

export function parseInfo(rawInfo: unknown, rawVersion: unknown): EngineInfo {
  const info = parse('info', infoAnswer, rawInfo);
  const version = parse('info', versionAnswer, rawVersion);
  return {
    version: info.ServerVersion,
    apiVersion: version.ApiVersion,
    runcVersion: version.Components.find(({ Name }) => Name === 'runc')?.Version ?? '',
    cgroupVersion: info.CgroupVersion === '1' ? 1 : 2,
    cgroupDriver: info.CgroupDriver,
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
    dockerRootDir: info.DockerRootDir,
  };
}

export function parseImage(raw: unknown): ImageInfo {
  const image = parse('image', imageAnswer, raw);
  return {
    id: image.Id,
    architecture: image.Architecture,
    os: image.Os,
    sizeBytes: image.Size,
    workingDir: image.Config.WorkingDir ?? '',
    env: image.Config.Env ?? [],
    volumes: Object.keys(image.Config.Volumes ?? {}),
    labels: image.Config.Labels ?? {},
  };
}

export function parseContainer(raw: unknown): ContainerState {
  const { Id, Image, RestartCount, State } = parse('inspect', containerAnswer, raw);
  return {
    id: Id,
    imageId: Image,
    status: State.Status,
    running: State.Running,
    paused: State.Paused,
    oomKilled: State.OOMKilled,
    exitCode: State.ExitCode,
    pid: State.Pid,
    startedAt: State.StartedAt,
    restartCount: RestartCount,
  };
}

export function parseId(call: string, raw: unknown): string {
  return parse(call, idAnswer, raw).Id;
}

/** Another daemon setting must not open what was asked to be closed. */
export function parseClosedNetwork(raw: unknown): void {
  parse('createInternalNetwork', closedNetworkAnswer, raw);
}

export function parseExit(raw: unknown): number {
  const { StatusCode, Error: failure } = parse('waitExit', exitAnswer, raw);
  if (failure) throw new EvaluatorError('engine_error', `waitExit: ${failure.Message.slice(0, 400)}`);
  return StatusCode;
}

export function parseExecState(raw: unknown): { running: boolean; exitCode: number | null; pid: number } {
  const { Running, ExitCode, Pid } = parse('execState', execAnswer, raw);
  return { running: Running, exitCode: ExitCode, pid: Pid };
}

/** The engine leaves SizeRw out while nothing was written. */
export function parseLayerSize(raw: unknown): number {
  return parse('writableLayerBytes', layerAnswer, raw).SizeRw ?? 0;
}

export function parseObject(call: string, raw: unknown): Record<string, unknown> {
  return parse(call, z.record(z.string(), z.unknown()), raw);
}
