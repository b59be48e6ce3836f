/** Files of packages that nothing loads: sources of other languages, typings, maps, manuals. */
const DROPPED_FILE =
  /(?:\.(?:[cm]?tsx?|map|flow|md|markdown|mkd|c|cc|h|gyp|gypi|node|scm|sh|ya?ml|html|txt|mak)|(?:^|\/)(?:makefile|jakefile|gruntfile\.js|package-lock\.json|bower\.json|component\.json|grammar\.js(?:on)?|node-types\.json|tree-sitter\.json|tsconfig[^/]*\.json))$/i;
const DROPPED_FOLDER = new Set([
  '__tests__',
  'bench',
  'benchmark',
  'benchmarks',
  'bindings',
  'coverage',
  'docs',
  'example',
  'examples',
  'man',
  'prebuilds',
  'queries',
  'scripts',
  'test',
  'tests',
]);
/** Second copies of a package's code, in a form that what runs here does not load. */
const DROPPED_IN: Readonly<Record<string, RegExp>> = {
  'node-forge': /^(?:dist|flash)\//,
  protobufjs: /^(?:cli|dist)\//,
  'web-tree-sitter': /^debug\/|\.cjs$/,
  yaml: /^browser\//,
  zod: /^src\/|\.cjs$/,
};
const LICENCE = /^(?:licen[cs]e|notice|copying)/i;

/** Whether a file of a package goes into an image. `path` is relative to the package's folder. */
export function isShipped(packageName: string, path: string): boolean {
  const segments = path.split('/');
  const name = segments.at(-1) ?? '';
  if (segments.some((segment) => segment.startsWith('.'))) return false;
  if (LICENCE.test(name)) return true;
  if (segments.slice(0, -1).some((segment) => DROPPED_FOLDER.has(segment))) return false;
  if (DROPPED_IN[packageName]?.test(path)) return false;
  // Of a grammar only its WebAssembly is loaded.
  if (packageName.startsWith('tree-sitter-')) return name.endsWith('.wasm') || path === 'package.json';
  return !DROPPED_FILE.test(path);
}
