import { z } from 'zod';
import { EvaluatorError } from '../../errors.ts';
import { parseForeignJson } from '../../wire/foreign-json.ts';
import { printable } from '../../wire/scalars.ts';
import { atLine } from './refuse.ts';
import type { Requirement } from './requirements.ts';
import { fitOf, parseWheelName, type WheelName, type WheelTarget } from './wheel-name.ts';

/** The media type of the simple API's JSON pages (PEP 691). */
export const SIMPLE_JSON = 'application/vnd.pypi.simple.v1+json';
/** Some projects have thousands of files. */
export const MAX_PAGE_BYTES = 32 * 1024 * 1024;
const MAX_DEPTH = 16;
const SHOWN_FILES = 8;

// Open where an index adds members of its own.
const pageSchema = z.object({
  meta: z.object({ 'api-version': z.string().regex(/^1\.\d+$/) }),
  files: z.array(
    z.object({
      filename: z.string().max(512),
      url: z.string().max(4096),
      hashes: z.record(z.string(), z.string()),
      // PEP 691: a reason, or true, says that its author has taken it back.
      yanked: z.union([z.boolean(), z.string()]).optional(),
    }),
  ),
});
type IndexFile = z.infer<typeof pageSchema>['files'][number];

/** A wheel that will do for a requirement. */
export interface ChosenWheel {
  requirement: Requirement;
  filename: string;
  /** https. */
  url: string;
  /** Hex; one of the requirement's. */
  sha256: string;
}

/** The page of a requirement's project. */
export function pageUrl(index: string, { name }: Requirement): string {
  return `${index.replace(/\/$/, '')}/${name}/`;
}

function readPage(bytes: Uint8Array, url: string): IndexFile[] {
  try {
    return pageSchema.parse(parseForeignJson(bytes, { maxBytes: MAX_PAGE_BYTES, maxDepth: MAX_DEPTH })).files;
  } catch (cause) {
    throw new EvaluatorError(
      'index_malformed',
      `${url}: not a page of the simple API as JSON (PEP 691); name an index that has them`,
      { cause },
    );
  }
}

/** Why a file of the pinned version does not do; null when it does. */
function objection(
  file: IndexFile,
  wheel: WheelName | null,
  { hashes }: Requirement,
  target: WheelTarget,
): string | null {
  if (wheel === null) return 'no wheel; only wheels are taken';
  if (file.yanked !== undefined && file.yanked !== false) return 'taken back by its author (yanked)';
  if (!hashes.includes(file.hashes.sha256 ?? '')) return 'its hash is not pinned';
  return fitOf(wheel, target) === null ? `does not run on ${shownTarget(target)}` : null;
}

function shownTarget(target: WheelTarget): string {
  return target.python === 'any'
    ? "every Python 3 (an agent in the task's container: pure Python only)"
    : `CPython 3.${target.minor} on linux/x86_64`;
}

const isOfVersion = (filename: string, version: string) =>
  parseWheelName(filename)?.version.toLowerCase() === version.toLowerCase().replaceAll('-', '_');

const isSourceOf = (filename: string, version: string) =>
  /\.(?:tar\.gz|zip|tar\.bz2|tgz)$/.test(filename) &&
  filename.replace(/\.(?:tar\.gz|zip|tar\.bz2|tgz)$/, '').endsWith(`-${version}`);

/**
 * The file of a project's page that answers a requirement: a wheel of exactly this version, not taken back,
 * with a pinned hash, that runs at `target`; of several the one that fits best.
 * @throws index_malformed; dependency_unavailable, with the line at fault and why each file does not do.
 */
export function chooseWheel(
  page: Uint8Array,
  url: string,
  requirement: Requirement,
  target: WheelTarget,
): ChosenWheel {
  const { name, version, line } = requirement;
  const why: string[] = [];
  let best: { file: IndexFile; fit: number } | null = null;
  for (const file of readPage(page, url)) {
    const wheel = parseWheelName(file.filename);
    if (
      wheel
        ? wheel.project !== name || !isOfVersion(file.filename, version)
        : !isSourceOf(file.filename, version)
    )
      continue;
    const problem = objection(file, wheel, requirement, target);
    if (problem !== null) why.push(`${file.filename}: ${problem}`);
    const fit = wheel && problem === null ? fitOf(wheel, target) : null;
    if (fit !== null && (best === null || fit > best.fit)) best = { file, fit };
  }
  if (best === null) {
    const reasons =
      why.length === 0 ? `the index has no file of ${version}` : why.slice(0, SHOWN_FILES).join('; ');
    throw atLine('dependency_unavailable', line, `${name}==${version}: ${reasons}`);
  }
  return {
    requirement,
    filename: best.file.filename,
    url: fileUrl(best.file, url),
    sha256: best.file.hashes.sha256 ?? '',
  };
}

/** A file's own address: relative ones are of its page. */
function fileUrl(file: IndexFile, page: string): string {
  const url = URL.canParse(file.url, page) ? new URL(file.url, page) : null;
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '')
    throw new EvaluatorError(
      'index_malformed',
      `${page}: the address of ${printable(file.filename)} is not https`,
    );
  url.hash = '';
  return url.href;
}
