const MAX_PATHS = 64;
/** Printable ASCII without a space: one path a line, in a file that a shell reads. */
const ABSOLUTE = /^\/[\x21-\x7e]{1,1023}$/;
/** Where the verifier, its tools and its interpreter come from, and what the engine mounts or we write to. */
const OF_THE_SYSTEM =
  /^\/(bin|boot|dev|etc|lib|lib32|lib64|libx32|logs|proc|root|run|sbin|sys|task|tests|tmp|usr)(\/|$)/;
const OF_OURS = /^\/(opt$|opt\/evaluator(\/|$)|\.evaluator)/;

/**
 * Why these cannot be what verifier mode `artifact` carries over from an agent's container (spec/03); null when
 * they can. Each is an absolute path in its one spelling, outside of the system's own folders, and none lies
 * below another.
 */
export function artifactPathsProblem(paths: readonly string[]): string | null {
  if (paths.length > MAX_PATHS) return `${paths.length} paths, at most ${MAX_PATHS}`;
  for (const path of paths) {
    const shown = JSON.stringify(path.slice(0, 80));
    const components = path.split('/').slice(1);
    if (!ABSOLUTE.test(path) || components.some((part) => part === '' || part === '.' || part === '..'))
      return `${shown} must be an absolute path of printable ASCII without \`.\`, \`..\` or a final slash`;
    if (OF_THE_SYSTEM.test(path) || OF_OURS.test(path))
      return `${shown} is a folder of the system, which always is the image's own`;
    const other = paths.find((one) => one !== path && one.startsWith(`${path}/`));
    if (other !== undefined) return `${JSON.stringify(other.slice(0, 80))} lies below ${shown}`;
  }
  return new Set(paths).size === paths.length ? null : 'a path comes twice';
}
