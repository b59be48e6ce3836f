import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';

const names = z.record(z.string(), z.string()).optional();
const flag = z.boolean().optional();
const lockfile = z.object({
  lockfileVersion: z.literal(3),
  packages: z.record(
    z.string(),
    z.object({
      dependencies: names,
      optionalDependencies: names,
      peerDependencies: names,
      dev: flag,
      optional: flag,
      devOptional: flag,
    }),
  ),
});
export type Lockfile = z.infer<typeof lockfile>;

/** Declared by packages of ours, never loaded by what runs in an image; a test traces what is. */
export const NEVER_LOADED: ReadonlySet<string> = new Set([
  // Typings.
  '@types/node',
  // Other runtimes than Node.
  'bare-buffer',
  'bare-events',
  'bare-fs',
  'bare-path',
  'bare-stream',
  'bare-url',
  // A command line of @grpc/proto-loader.
  'yargs',
  // pino's transports: the journal writes to a descriptor.
  'pino-abstract-transport',
  // Native builds of grammars: the images load their WebAssembly.
  'node-addon-api',
  'node-gyp-build',
  'tree-sitter',
  // Chains that the guest agent's SDK can serve.
  '@solana/web3.js',
  'viem',
]);
/** A grammar is a file of WebAssembly; what its package depends on belongs to its native build. */
const isGrammar = (name: string): boolean => name.startsWith('tree-sitter-');

/** Reads package-lock.json. @throws build_source_invalid. */
export function parseLockfile(text: string): Lockfile {
  try {
    return lockfile.parse(JSON.parse(text));
  } catch (cause) {
    throw new EvaluatorError('build_source_invalid', 'package-lock.json is no lockfile of version 3', {
      cause,
    });
  }
}

/** Whether `npm ci --omit=dev --omit=optional` leaves a package there. */
function isInstalled(lock: Lockfile, path: string): boolean {
  const entry = lock.packages[path];
  return entry !== undefined && !(entry.dev || entry.optional || entry.devOptional);
}

/** The place of `name` as Node finds it from the package at `from`; null when it was not installed. */
function locate(lock: Lockfile, from: string, name: string): string | null {
  for (let at = from; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const nested = `${at}/node_modules/${name}`;
    if (isInstalled(lock, nested)) return nested;
  }
  const top = `node_modules/${name}`;
  return isInstalled(lock, top) ? top : null;
}

/**
 * Where the packages lie that `roots` need, each as `node_modules/…`, sorted.
 * @throws build_source_invalid for a root that the lockfile does not have.
 */
export function neededPackages(lock: Lockfile, roots: readonly string[]): string[] {
  const found = new Set<string>();
  const visit = (from: string, name: string, need: 'must' | 'may'): void => {
    if (NEVER_LOADED.has(name)) return;
    const path = locate(lock, from, name);
    if (path === null && need === 'must')
      throw new EvaluatorError(
        'build_source_invalid',
        `package-lock.json has no ${name}, which ${from || 'the source'} needs`,
      );
    if (path === null || found.has(path)) return;
    found.add(path);
    const entry = lock.packages[path];
    if (isGrammar(name)) return;
    for (const dependency of Object.keys(entry?.dependencies ?? {})) visit(path, dependency, 'must');
    for (const dependency of Object.keys({ ...entry?.optionalDependencies, ...entry?.peerDependencies }))
      visit(path, dependency, 'may');
  };
  for (const name of roots) visit('', name, 'must');
  return [...found].sort();
}
