import { EvaluatorError } from '../guest/errors.ts';
import { envName } from '../guest/wire/scalars.ts';

/**
 * Never handed to a VM (spec/06): each of them changes what the VM's own programs do before the guest has
 * checked anything. Curl and others read the lower-case forms too.
 */
const REFUSED =
  /^(?:COMPOSE|DOCKER|NODE|BASH|LD|GLIBC|GCONV|SSL|OPENSSL|DSTACK)_|_PROXY$|^(?:PATH|CDPATH|ENV|IFS|HOME|TMPDIR|PS4|SHELLOPTS|BASHOPTS|GLOBIGNORE|GODEBUG)$/i;

/** True when a variable of this name may be handed to a VM. */
function isAllowedEnvName(name: string): boolean {
  return envName.safeParse(name).success && !REFUSED.test(name);
}

/**
 * The names of encrypted variables as they stand in a compose: sorted by code unit.
 * @throws env_name_refused naming the first that may not be there, or is there twice.
 */
export function allowedEnvNames(names: readonly string[]): string[] {
  const sorted = [...names].sort();
  sorted.forEach((name, index) => {
    if (!isAllowedEnvName(name)) {
      throw new EvaluatorError(
        'env_name_refused',
        `variable ${JSON.stringify(name.slice(0, 128))}: may not be handed to a VM; give it another name`,
      );
    }
    if (name === sorted[index + 1]) {
      throw new EvaluatorError('env_name_refused', `variable ${name}: named twice`);
    }
  });
  return sorted;
}
