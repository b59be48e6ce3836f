import { EvaluatorError } from '../errors.ts';

export interface ForeignLimits {
  maxBytes: number;
  maxDepth: number;
}

/**
 * Walks JSON text that JSON.parse has accepted and refuses what it hides: a key given twice (after
 * unescaping) and nesting beyond the cap.
 */
function checkStructure(text: string, maxDepth: number): void {
  const open: (Set<string> | null)[] = [];
  let expectKey = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '{' || c === '[') {
      open.push(c === '{' ? new Set() : null);
      expectKey = c === '{';
      if (open.length > maxDepth)
        throw new EvaluatorError('json_too_deep', `document: deeper than ${maxDepth} levels`);
    } else if (c === '}' || c === ']') {
      open.pop();
      expectKey = false;
    } else if (c === ',') {
      expectKey = open.at(-1) instanceof Set;
    } else if (c === '"') {
      const start = i;
      for (i++; text[i] !== '"'; i++) if (text[i] === '\\') i++;
      const keys = open.at(-1);
      if (!expectKey || !keys) continue;
      const key = JSON.parse(text.slice(start, i + 1)) as string;
      if (key === '__proto__')
        throw new EvaluatorError('json_malformed', 'document: a member named __proto__');
      if (keys.has(key))
        throw new EvaluatorError(
          'json_duplicate_key',
          `document: the key ${JSON.stringify(key.slice(0, 64))} twice`,
        );
      keys.add(key);
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
