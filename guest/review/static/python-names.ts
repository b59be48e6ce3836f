import type { Names } from './names.ts';
import { child, type Syntax } from './syntax.ts';

/** What one statement of Python says of names: imports, assignments, defaults, loops over literals. */
export function declare(node: Syntax, names: Names): void {
  if (node.type === 'import_statement') {
    for (const one of node.children) {
      if (one.type === 'aliased_import')
        names.addModule(child(one, 'alias')?.text ?? '', child(one, 'name')?.text ?? '');
    }
  } else if (node.type === 'import_from_statement') {
    const module = child(node, 'module_name')?.text ?? '';
    for (const one of node.children.filter(({ field }) => field === 'name')) {
      const name = child(one, 'name')?.text ?? one.text;
      names.addModule(child(one, 'alias')?.text ?? name, `${module}.${name}`);
    }
  } else if (node.type === 'assignment' || node.type === 'named_expression') {
    const target = child(node, 'left') ?? child(node, 'name');
    const value = child(node, 'right') ?? child(node, 'value');
    if (target && value) assign(target, value, names);
  } else if (node.type === 'augmented_assignment') {
    const [name, value] = [child(node, 'left'), child(node, 'right')];
    if (name && value && child(node, 'operator')?.text === '+=') names.append(name.text, value);
  } else if (node.type === 'default_parameter' || node.type === 'typed_default_parameter') {
    const [name, value] = [child(node, 'name'), child(node, 'value')];
    if (name && value) names.assign(name.text, value);
  } else if (node.type === 'for_statement' || node.type === 'for_in_clause') {
    const [name, list] = [child(node, 'left'), child(node, 'right')];
    if (name && list && /^(?:list|tuple|set)$/.test(list.type))
      for (const item of list.children) names.assign(name.text, item);
  }
}

function assign(target: Syntax, value: Syntax, names: Names): void {
  const paired =
    /^(?:pattern_list|tuple_pattern)$/.test(target.type) && /^(?:expression_list|tuple)$/.test(value.type);
  if (!paired) {
    names.assign(target.text, value);
    return;
  }
  target.children.forEach((one, i) => {
    const item = value.children[i];
    if (item) names.assign(one.text, item);
  });
}
