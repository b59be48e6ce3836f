import { readFileSync } from 'node:fs';

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');

/** Runs before the containers are started. */
export const PRE_LAUNCH_SCRIPT = read('pre-launch.sh');

const INIT_SCRIPT = read('init-script.sh');
const NAMES = '@ENV_NAMES@';

/**
 * Runs before the engine at every boot.
 * @param envNames as `allowedEnvNames` returns them: each is letters, digits and underscores.
 */
export function initScript(envNames: readonly string[]): string {
  return INIT_SCRIPT.replace(NAMES, envNames.join('|'));
}
