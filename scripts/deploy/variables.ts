import { EvaluatorError } from '../../guest/errors.ts';

const MAX_FILE_BYTES = 1024 * 1024;
/** What the init script lets through (compose/init-script.sh). */
const VALUE = /^[A-Za-z0-9+/=_.:-]*$/;

/** Secrets by name; `missing`: named in the compose and given nowhere. */
export interface Variables {
  values: Readonly<Record<string, string>>;
  missing: readonly string[];
}

function invalid(problem: string): EvaluatorError {
  return new EvaluatorError('deploy_env_invalid', `variables: ${problem}`);
}

/** `NAME=value` lines; `#` starts a comment line. Messages have names and line numbers, never a value. */
function parseFile(bytes: Buffer, names: ReadonlySet<string>): Map<string, string> {
  if (bytes.length > MAX_FILE_BYTES) throw invalid(`the file is above ${MAX_FILE_BYTES} bytes`);
  const found = new Map<string, string>();
  bytes
    .toString('latin1')
    .split('\n')
    .forEach((line, index) => {
      if (line === '' || line.startsWith('#')) return;
      const equals = line.indexOf('=');
      const name = line.slice(0, Math.max(equals, 0));
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw invalid(`line ${index + 1} is not NAME=value`);
      if (!names.has(name)) throw invalid(`line ${index + 1}: ${name.slice(0, 128)} is not in the compose`);
      if (found.has(name)) throw invalid(`line ${index + 1}: ${name} is there twice`);
      found.set(name, line.slice(equals + 1));
    });
  return found;
}

/**
 * The values of a compose's variables, from a file, or from this process's environment when there is none.
 * @param file bytes of `NAME=value` lines; null: the environment.
 * @throws deploy_env_invalid naming the variable, never its value.
 */
export function readVariables(
  names: readonly string[],
  file: Buffer | null,
  env: NodeJS.ProcessEnv,
): Variables {
  const given = file === null ? null : parseFile(file, new Set(names));
  const values: Record<string, string> = {};
  const missing: string[] = [];
  for (const name of names) {
    const value = given === null ? env[name] : given.get(name);
    if (value === undefined || value === '') missing.push(name);
    else if (VALUE.test(value)) values[name] = value;
    else
      throw invalid(
        `${name}: has a character that ends the boot; use A-Z a-z 0-9 + / = _ . : - (documents as base64url)`,
      );
  }
  return { values, missing };
}

/** @throws deploy_env_invalid naming the first that may not be absent. */
export function verifyComplete({ missing }: Variables, optional: ReadonlySet<string>): void {
  const needed = missing.filter((name) => !optional.has(name));
  if (needed.length > 0) throw invalid(`no value for ${needed.join(', ')}; see --env-file`);
}
