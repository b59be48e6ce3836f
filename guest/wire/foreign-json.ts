import { EvaluatorError } from '../errors.ts';

export interface ForeignLimits {
  maxBytes: number;
  maxDepth: number;
}

/** Of an object that has shown no key yet: most of a hostile million have none. */
const NO_KEYS: ReadonlySet<string> = new Set();

/**
 * Walks JSON text that JSON.parse has accepted and refuses what it hides: a key given twice (after
 * unescaping) and nesting beyond the cap.
 */
function checkStructure(text: string, maxDepth: number): void {
  const open: (ReadonlySet<string> | null)[] = [];
  let expectKey = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '{' || c === '[') {
      open.push(c === '{' ? NO_KEYS : null);
      expectKey = c === '{';
      if (open.length > maxDepth)
        throw new EvaluatorError('json_too_deep', `document: deeper than ${maxDepth} levels`);
    } else if (c === '}' || c === ']') {
      open.pop();
      expectKey = false;
    } else if (c === ',') {
      expectKey = open[open.length - 1] instanceof Set;
    } else if (c === '"') {
      const start = i;
      let escaped = false;
      for (i++; text[i] !== '"'; i++) {
        if (text[i] !== '\\') continue;
        escaped = true;
        i++;
      }
      const keys = open[open.length - 1];
      if (!expectKey || !keys) continue;
      const key = escaped ? (JSON.parse(text.slice(start, i + 1)) as string) : text.slice(start + 1, i);
      if (key === '__proto__')
        throw new EvaluatorError('json_malformed', 'document: a member named __proto__');
      if (keys.has(key))
        throw new EvaluatorError(
          'json_duplicate_key',
          `document: the key ${JSON.stringify(key.slice(0, 64))} twice`,
        );
      if (keys instanceof Set && keys !== NO_KEYS) keys.add(key);
      else open[open.length - 1] = new Set([key]);
      expectKey = false;
    }
  }
}

/**
 * Reads JSON that need not be canonical (agent output, guest agent replies): UTF-8, capped in size and
 * depth, no key twice (spec/01).
 * @throws json_too_large, json_malformed, json_too_deep, json_duplicate_key.
 */
export function parseForeignJson(bytes: Uint8Array, limits: ForeignLimits): unknown {
  if (bytes.byteLength > limits.maxBytes) {
    throw new EvaluatorError(
      'json_too_large',
      `document of ${bytes.byteLength} bytes, at most ${limits.maxBytes} are read`,
    );
  }
  let value: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw new EvaluatorError('json_malformed', 'document is not UTF-8 JSON', { cause });
  }
  checkStructure(text, limits.maxDepth);
  return value;
}
