import { isScalar, LineCounter, parseDocument, visit, type YAMLMap } from 'yaml';
import { type Code, EvaluatorError } from '../errors.ts';
import { printable } from './scalars.ts';

/** 256 KiB (spec/08). */
const MAX_YAML_BYTES = 256 * 1024;
/** Nodes above a collection; a level of a mapping is two, the mapping and the pair. */
const MAX_YAML_PATH = 64;

/** Whether a mapping has a key twice, or one that is not text. The library's own check is quadratic. */
function hasForeignKey(map: YAMLMap): boolean {
  const seen = new Set<string>();
  return map.items.some(({ key }) => {
    const name = isScalar(key) ? key.value : null;
    if (typeof name !== 'string' || seen.has(name)) return true;
    seen.add(name);
    return false;
  });
}

/**
 * Reads one YAML document: UTF-8, no key twice and none but text, no alias, no unknown tag (the library only warns of those),
 * no `__proto__`, no deeper than 32 mappings or 64 lists, at most
 * 256 KiB (spec/08).
 * @param document what is read, for the message.
 * @throws `code` on everything that is refused.
 */
export function parseYaml(bytes: Uint8Array, document: string, code: Code): unknown {
  const refuse = (what: string, cause?: unknown): never => {
    throw new EvaluatorError(code, `${document}: ${what}`, { cause });
  };
  if (bytes.byteLength > MAX_YAML_BYTES) refuse(`larger than ${MAX_YAML_BYTES} bytes`);
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    refuse('not UTF-8', cause);
  }
  const lineCounter = new LineCounter();
  const parsed = parseDocument(text, {
    lineCounter,
    version: '1.2',
    uniqueKeys: false,
    strict: true,
    prettyErrors: false,
  });
  const problem = parsed.errors[0] ?? parsed.warnings[0];
  if (problem) {
    const { line, col } = lineCounter.linePos(problem.pos[0]);
    refuse(`${problem.code} at line ${line}, column ${col}: ${printable(problem.message)}`);
  }
  visit(parsed, {
    Alias: () => refuse('aliases are not allowed'),
    Map: (_, map, path) => {
      if (path.length > MAX_YAML_PATH) refuse('nested too deeply');
      if (hasForeignKey(map)) refuse('a key twice in one mapping, or a key that is not text');
    },
    Seq: (_, __, path) => {
      if (path.length > MAX_YAML_PATH) refuse('nested too deeply');
    },
    Pair: (_, { key }) => {
      if (String(key) === '__proto__') refuse('a key named __proto__');
    },
  });
  return parsed.toJS({ maxAliasCount: 0 });
}
