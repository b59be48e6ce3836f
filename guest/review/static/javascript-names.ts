import type { Names } from './names.ts';
import { child, type Syntax, walk } from './syntax.ts';

/** What a declaration needs to be told of the expressions in it. */
export interface NameReader {
  textOf(node: Syntax | undefined): string | undefined;
  dottedOf(node: Syntax): string | null;
}

/** `node:fs` is `fs`. */
export const moduleName = (text: string | undefined) => (text ?? '').replace(/^node:/, '');

/** What one statement of JavaScript says of names: imports, assignments, loops over literals. */
export function declare(node: Syntax, names: Names, reader: NameReader): void {
  if (node.type === 'import_statement') {
    addImports(node, names, moduleName(reader.textOf(child(node, 'source'))));
  } else if (node.type === 'variable_declarator' || node.type === 'assignment_expression') {
    const target = child(node, 'name') ?? child(node, 'left');
    const value = child(node, 'value') ?? child(node, 'right');
    if (target && value) assign(target, value, names, reader);
  } else if (node.type === 'augmented_assignment_expression') {
    const [name, value] = [child(node, 'left'), child(node, 'right')];
    if (name && value && child(node, 'operator')?.text === '+=') names.append(name.text, value);
  } else if (node.type === 'for_in_statement') {
    const [name, list] = [child(node, 'left'), child(node, 'right')];
    if (name && list?.type === 'array') for (const item of list.children) names.assign(name.text, item);
  }
}

function addImports(node: Syntax, names: Names, module: string): void {
  for (const one of walk(node)) {
    if (one.type === 'import_specifier') {
      const name = child(one, 'name')?.text ?? '';
      names.addModule(child(one, 'alias')?.text ?? name, `${module}.${name}`);
    } else if (one.type === 'namespace_import' || one.type === 'import_clause') {
      const [name] = one.children;
      if (name?.type === 'identifier') names.addModule(name.text, module);
    }
  }
}

function assign(target: Syntax, value: Syntax, names: Names, reader: NameReader): void {
  if (target.type !== 'object_pattern') {
    names.assign(target.text, value);
    return;
  }
  const module = reader.dottedOf(value) ?? '';
  for (const one of target.children) {
    const name = child(one, 'key')?.text ?? one.text;
    names.addModule(child(one, 'value')?.text ?? name, `${module}.${name}`);
  }
}
