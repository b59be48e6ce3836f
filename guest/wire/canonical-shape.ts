import { EvaluatorError } from '../errors.ts';

/** Of the containers in each other; the encoder counts exactly. */
const MAX_OPEN = 66;
/** Objects of ours are closed, and have fewer members. */
const MAX_MEMBERS = 128;
/** What a document may have whatever its size, and above it one value for so many of its bytes. */
const FREE_VALUES = 4096;
const BYTES_A_VALUE = 8;

const [QUOTE, ESCAPE, COMMA, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from(
  '"\\,[]{}',
) as unknown as [number, number, number, number, number, number, number];

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === ESCAPE ? 2 : 1;
  return at;
}

/**
 * Refuses JSON text that takes seconds and gigabytes to parse and encode, by a walk that builds nothing: too
 * deep, or of far more values than a document of ours of this size. Says nothing about whether it is JSON.
 * @throws json_not_canonical when it is too deep, json_too_large.
 */
export function verifyShape(text: string): void {
  const most = FREE_VALUES + text.length / BYTES_A_VALUE;
  // Of each open container, its members so far; a list is counted among all values alone.
  const members: number[] = [];
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      members.push(character === OPEN_OBJECT ? 1 : Number.NEGATIVE_INFINITY);
      values += 1;
      if (members.length > MAX_OPEN) {
        throw new EvaluatorError('json_not_canonical', `document: deeper than ${MAX_OPEN} levels`);
      }
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) members.pop();
    else if (character === COMMA) {
      values += 1;
      const count = (members.pop() ?? 0) + 1;
      members.push(count);
      if (count > MAX_MEMBERS || values > most) {
        throw new EvaluatorError('json_too_large', 'document: more values than a document of its size has');
      }
    }
  }
}
