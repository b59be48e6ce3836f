/** A path to a leaf of a JSON document, and the document with that one leaf changed. */
export interface ChangedLeaf {
  path: string;
  document: unknown;
}

function otherText(text: string): string {
  // Another value of the same alphabet, so that most changes pass the schema and meet the check behind it.
  const at = Math.max(...['0', '1', '2', 'a', 'e', 'n'].map((digit) => text.lastIndexOf(digit)));
  if (at < 0) return `${text}x`;
  return text.slice(0, at) + (text[at] === '1' ? '2' : '1') + text.slice(at + 1);
}

function otherLeaf(value: unknown): unknown {
  if (typeof value === 'string') return otherText(value);
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  return '11';
}

/** Every document that differs from `document` in exactly one leaf (null counts as one). */
export function* changedLeaves(document: unknown, path = ''): Generator<ChangedLeaf> {
  if (Array.isArray(document)) {
    for (const [index, item] of document.entries()) {
      for (const changed of changedLeaves(item, `${path}[${index}]`)) {
        yield { path: changed.path, document: document.with(index, changed.document) };
      }
    }
  } else if (typeof document === 'object' && document !== null) {
    for (const [key, value] of Object.entries(document)) {
      for (const changed of changedLeaves(value, `${path}.${key}`)) {
        yield { path: changed.path, document: { ...document, [key]: changed.document } };
      }
    }
  } else {
    yield { path, document: otherLeaf(document) };
  }
}

/** Every document that lacks one member or has one more. */
export function* changedShapes(document: unknown, path = ''): Generator<ChangedLeaf> {
  if (Array.isArray(document)) {
    for (const [index, item] of document.entries()) {
      yield { path: `${path}: without [${index}]`, document: document.toSpliced(index, 1) };
      yield { path: `${path}: [${index}] twice`, document: document.toSpliced(index, 0, item) };
      for (const changed of changedShapes(item, `${path}[${index}]`)) {
        yield { path: changed.path, document: document.with(index, changed.document) };
      }
    }
  } else if (typeof document === 'object' && document !== null) {
    yield { path: `${path}: a member more`, document: { ...document, unknown: 1 } };
    for (const [key, value] of Object.entries(document)) {
      const { [key]: _, ...without } = document as Record<string, unknown>;
      yield { path: `${path}: without ${key}`, document: without };
      for (const changed of changedShapes(value, `${path}.${key}`)) {
        yield { path: changed.path, document: { ...document, [key]: changed.document } };
      }
    }
  }
}
