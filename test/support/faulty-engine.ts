import { Readable } from 'node:stream';
import type { Engine, RunningExec } from '../../guest/engine/port.ts';
import { EvaluatorError } from '../../guest/errors.ts';

/**
 * `not_done`: the engine never saw the call, and its deadline passed. `answer_lost`: it carried it out, and the
 * connection broke before its answer.
 */
export type FaultKind = 'not_done' | 'answer_lost';

export interface EngineFault {
  /** The first call that fails, from 1. */
  at: number;
  kind: FaultKind;
  lasts: 'once' | 'for_good';
}

export interface FaultyEngine {
  engine: Engine;
  /** The calls so far, by name, in order. */
  calls: string[];
  /** Places in `calls` where an exec of the agent's command was started. */
  agentStarts: number[];
}

const READS: ReadonlySet<string> = new Set<keyof Engine>([
  ...(['execState', 'getArchive', 'image', 'info', 'inspect', 'inspectRaw'] as const),
  ...(['statPath', 'waitExit', 'writableLayerBytes'] as const),
]);

/** One that changes nothing on the engine: if its answer is lost, it is as if it was not done. */
export function isRead(call: string): boolean {
  return READS.has(call);
}

const AGENT_SCRIPT = '/agent/agent.sh';

function letGo(answer: unknown): void {
  if (answer instanceof Readable) answer.destroy();
  else if (typeof answer === 'object' && answer !== null && 'detach' in answer)
    (answer as RunningExec).detach();
}

/** A real engine some of whose calls fail. Everything else about it is real. */
export function faultyEngine(real: Engine, fault: EngineFault | null): FaultyEngine {
  const calls: string[] = [];
  const agentStarts: number[] = [];
  const agentExecs = new Set<string>();

  const fails = (at: number) => fault !== null && (fault.lasts === 'once' ? at === fault.at : at >= fault.at);

  const engine = new Proxy(real, {
    get(target, name: keyof Engine & string) {
      const call = target[name] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        calls.push(name);
        const at = calls.length;
        const isAgent = (args[1] as { command?: string[] } | undefined)?.command?.includes(AGENT_SCRIPT);
        if (name === 'startExec' && agentExecs.has(String(args[0]))) agentStarts.push(at);
        const lost = new EvaluatorError(
          fault?.kind === 'not_done' ? 'engine_timeout' : 'engine_unreachable',
          `${name} (call ${at}): lost on purpose`,
        );
        if (fails(at) && fault?.kind === 'not_done') throw lost;
        const answer = await call.apply(target, args);
        if (name === 'createExec' && isAgent) agentExecs.add(String(answer));
        if (!fails(at)) return answer;
        letGo(answer);
        throw lost;
      };
    },
  });
  return { engine, calls, agentStarts };
}
