/** A node of a syntax tree, copied out of the parser so that no budget of the parser's memory is held. */
export interface Syntax {
  type: string;
  /** The name of the grammar's field that it stands in, or null. */
  field: string | null;
  text: string;
  /** From 1. */
  line: number;
  children: readonly Syntax[];
}

/** The first child in this field. */
export function child(node: Syntax, field: string): Syntax | undefined {
  return node.children.find((one) => one.field === field);
}

/** Every node of a tree, parents first. */
export function* walk(root: Syntax): Generator<Syntax> {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    for (let i = node.children.length - 1; i >= 0; i--) {
      const next = node.children[i];
      if (next) open.push(next);
    }
  }
}
