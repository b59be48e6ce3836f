import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { readVerified, sha256Hex, writeAtomic } from './cache.ts';
import type { DebianPackage } from './lock.ts';
import { debianMirror } from './mirror.ts';
import { runTool } from './run.ts';

const SUITE = 'trixie';
const KEYRINGS = ['gpg', 'pgp'].map((end) => `/usr/share/keyrings/debian-archive-keyring.${end}`);
const REMEDY =
  'Building the toolchain needs Debian packages once; afterwards its cache is enough. EVALUATOR_DEBIAN_MIRROR names another mirror.';

/** Where a locked package's bytes lie once they are there. */
export function debFile(cache: string, one: DebianPackage): string {
  return join(cache, 'debs', `${one.sha256}.deb`);
}

export function isCached(cache: string, one: DebianPackage): boolean {
  return readVerified(debFile(cache, one), one.sha256) !== undefined;
}

/** What is asked of a Debian archive. */
export type DebianArchive = {
  /** What it serves of these names now. @throws toolchain_unavailable */
  newest(names: readonly string[]): DebianPackage[];
  /** Those whose exact version is no longer served. */
  gone(packages: readonly DebianPackage[]): DebianPackage[];
  /** Puts the packages into the cache, each with the hash that is asked for. @throws toolchain_* */
  download(packages: readonly DebianPackage[], cache: string): void;
  close(): void;
};

/** The suite's package lists as the machine's mirror serves them, in a private apt root, checked by apt's signature. */
export class DebianSuite implements DebianArchive {
  readonly #root: string;
  readonly #options: readonly string[];

  /** @throws toolchain_unavailable */
  constructor() {
    const keyring = KEYRINGS.find(existsSync);
    if (keyring === undefined)
      throw new EvaluatorError(
        'toolchain_unavailable',
        `${KEYRINGS[0]} is missing: install the package debian-archive-keyring.`,
      );
    const sources = sourcesList(keyring);
    this.#root = mkdtempSync(join(tmpdir(), 'debian-'));
    const at = (path: string) => join(this.#root, path);
    for (const path of ['state/lists/partial', 'cache/archives/partial', 'debs'])
      mkdirSync(at(path), { recursive: true });
    writeFileSync(at('status'), '');
    writeFileSync(at('sources.list'), sources);
    this.#options = [
      `Dir::Etc::sourcelist=${at('sources.list')}`,
      'Dir::Etc::sourceparts=/dev/null',
      'Dir::Etc::preferencesparts=/dev/null',
      `Dir::State=${at('state')}`,
      `Dir::State::status=${at('status')}`,
      `Dir::Cache=${at('cache')}`,
      'APT::Architecture=amd64',
      'APT::Architectures=amd64',
      'Acquire::Languages=none',
      'Acquire::Retries=3',
      // The sandbox user may not enter this folder, and nothing of what is fetched is run.
      'APT::Sandbox::User=',
      ...['DEP-11', 'DEP-11-icons-small', 'DEP-11-icons', 'Contents-deb'].map(
        (index) => `Acquire::IndexTargets::deb::${index}::DefaultEnabled=false`,
      ),
    ].flatMap((option) => ['-o', option]);
    try {
      this.#apt('apt-get', ['update', '--error-on=any']);
    } catch (error) {
      // Whoever called has nothing to close.
      this.close();
      throw error;
    }
  }

  #apt(program: string, args: readonly string[]): string {
    const options = { cwd: join(this.#root, 'debs'), remedy: REMEDY, timeoutMs: 600_000 };
    return runTool(program, [...args, ...this.#options], options);
  }

  newest(names: readonly string[]): DebianPackage[] {
    const lines = this.#apt('apt-get', ['download', '--print-uris', ...names]);
    const found = new Map(
      lines
        .split('\n')
        .flatMap(parseUri)
        .map((one) => [one.name, one]),
    );
    return names.map((name) => {
      const one = found.get(name);
      if (one === undefined)
        throw new EvaluatorError('toolchain_unavailable', `${SUITE} serves no package ${name}. ${REMEDY}`);
      return one;
    });
  }

  gone(packages: readonly DebianPackage[]): DebianPackage[] {
    const lines = this.#apt('apt-cache', ['madison', ...packages.map(({ name }) => name)]);
    const served = new Set(
      lines.split('\n').map((line) => {
        const [name, version] = line.split('|').map((field) => field.trim());
        return `${name}=${version}`;
      }),
    );
    return packages.filter(({ name, version }) => !served.has(`${name}=${version}`));
  }

  download(packages: readonly DebianPackage[], cache: string): void {
    const missing = packages.filter((one) => !isCached(cache, one));
    if (missing.length === 0) return;
    this.#apt('apt-get', ['download', '--quiet', ...missing.map((one) => `${one.name}=${one.version}`)]);
    const folder = join(this.#root, 'debs');
    const wanted = new Map(missing.map((one) => [one.sha256, one]));
    for (const name of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, name));
      const one = wanted.get(sha256Hex(bytes));
      if (one !== undefined) writeAtomic(debFile(cache, one), bytes);
      rmSync(join(folder, name));
    }
    const absent = missing.find((one) => !isCached(cache, one));
    if (absent !== undefined)
      throw new EvaluatorError(
        'toolchain_invalid',
        `${absent.name} ${absent.version} is served with another hash than debian.lock names.`,
      );
  }

  close(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}

function sourcesList(keyring: string): string {
  const { main, security } = debianMirror();
  const line = (address: string, suite: string) =>
    `deb [arch=amd64 signed-by=${keyring}] ${address} ${suite} main\n`;
  return line(main, SUITE) + line(main, `${SUITE}-updates`) + line(security, `${SUITE}-security`);
}

/** `'ADDRESS' NAME_VERSION_ARCH.deb SIZE SHA256:HEX`, as apt-get prints it. */
function parseUri(line: string): DebianPackage[] {
  const [, file = '', sha256 = ''] = /^'[^']*' (\S+) \d+ SHA256:([0-9a-f]{64})$/.exec(line) ?? [];
  const [name, version] = file.split('_');
  return name && version ? [{ name, version: decodeURIComponent(version), sha256 }] : [];
}
