import { EvaluatorError } from '../errors.ts';

/** The URL path of a container. */
export function container(id: string): string {
  return `/containers/${segment(id)}`;
}

/** An image reference as a URL path: its slashes stay. */
export function imagePath(ref: string): string {
  return ref.split('/').map(segment).join('/');
}

/** An empty or dotted segment would be cleaned away by the engine's router and name something else. */
export function segment(text: string): string {
  if (text === '' || text === '.' || text === '..') {
    throw new EvaluatorError('engine_not_found', `'${text}' names nothing on the engine`);
  }
  return encodeURIComponent(text);
}
