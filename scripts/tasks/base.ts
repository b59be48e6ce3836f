import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { STAND_IN_LABEL, STAND_IN_VALUE, SUITE_LABEL } from '../../guest/tasks/image-rules.ts';
import { baseImages } from './dockerfile.ts';
import { connectImageStore, type ImageStore } from './image-store.ts';
import { runProgram } from './process.ts';
import { findTasks } from './source.ts';
import { buildPython } from './stand-in-python.ts';
import { STAND_INS, type StandIn, type Suite } from './stand-ins.ts';

const CA_BUNDLE = '/etc/ssl/certs/ca-certificates.crt';
const LOCAL_CAS = '/usr/local/share/ca-certificates';

/** What became of one name. */
export interface BaseResult {
  tag: string;
  image: string;
  action: 'kept' | 'made';
}

export interface BaseOptions {
  engineSocket: string;
  /** The names that are wanted, as in FROM; names that no stand-in has are left out. */
  tags: ReadonlySet<string>;
  /** Answers for all of them, instead of the suite that each has by default. */
  suite?: Suite;
  onProgress(message: string): void;
}

async function isOnPath(program: string): Promise<boolean> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const found = await access(join(directory, program)).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}

async function verifyPrerequisites(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new EvaluatorError('base_unavailable', 'making a base image needs root: run this as root (sudo)');
  if (!(await isOnPath('mmdebstrap')))
    throw new EvaluatorError(
      'base_unavailable',
      'making a base image needs mmdebstrap: apt-get install mmdebstrap',
    );
  await access(CA_BUNDLE).catch((cause) => {
    throw new EvaluatorError(
      'base_unavailable',
      `making a base image needs ${CA_BUNDLE}: apt-get install ca-certificates`,
      { cause },
    );
  });
}

/** mmdebstrap's hooks see the new root as $1. @param pythonTar what goes to /usr/local; null: Debian's is the Python. */
function customizeHooks(pythonTar: string | null): string[] {
  const python =
    pythonTar === null
      ? ['ln -s python3 "$1/usr/bin/python"', 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED']
      : [`tar --extract --file='${pythonTar}' --directory="$1/usr/local"`];
  return [
    ...python,
    // Both: the bundle for now, the machine's own authorities for every later update-ca-certificates.
    `if ls ${LOCAL_CAS}/*.crt >/dev/null 2>&1; then cp ${LOCAL_CAS}/*.crt "$1${LOCAL_CAS}/"; fi`,
    `cp ${CA_BUNDLE} "$1${CA_BUNDLE}"`,
    `printf '[global]\\ncert = ${CA_BUNDLE}\\n' > "$1/etc/pip.conf"`,
  ].map((hook) => `--customize-hook=${hook}`);
}

async function importTar(store: ImageStore, file: string, standIn: StandIn): Promise<string> {
  const changes = [
    `LABEL ${STAND_IN_LABEL}=${STAND_IN_VALUE}`,
    `LABEL ${SUITE_LABEL}=${standIn.suite}`,
    'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'ENV LANG=C.UTF-8',
    'CMD ["bash"]',
  ];
  const name = standIn.tags[0] ?? '';
  const error = await store.importTar(file, name, changes);
  const image = error === null ? await store.inspect(name) : null;
  if (image === null)
    throw new EvaluatorError(
      'base_unavailable',
      `${standIn.suite}: the engine took no image: ${error ?? 'no reason given'}`,
    );
  return image.id;
}

async function makeImage(store: ImageStore, standIn: StandIn): Promise<string> {
  await verifyPrerequisites();
  const work = await mkdtemp(join(tmpdir(), 'evaluator-base-'));
  try {
    const file = join(work, 'root.tar');
    const python = standIn.python === 'built' ? await buildPython(work) : null;
    const packages = `--include=${standIn.packages.join(',')}`;
    const hooks = customizeHooks(python);
    await runProgram('mmdebstrap', ['--variant=minbase', packages, ...hooks, standIn.suite, file]);
    return await importTar(store, file, standIn);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** An image of the same suite made earlier, under whatever name. */
async function findMade(store: ImageStore, standIn: StandIn): Promise<string | null> {
  const labels = [`${STAND_IN_LABEL}=${STAND_IN_VALUE}`, `${SUITE_LABEL}=${standIn.suite}`];
  // Images built on a stand-in carry its labels too: only a base has one of these names.
  const images = await store.findByLabels(labels);
  return images.find(({ tags }) => tags.some((tag) => standIn.tags.includes(tag)))?.id ?? null;
}

/** Every name that a stand-in has. */
export const STAND_IN_TAGS: ReadonlySet<string> = new Set(STAND_INS.flatMap(({ tags }) => tags));

/**
 * What the Dockerfiles of tasks name in FROM.
 * @param folder a task, or a folder of tasks.
 * @throws task_unknown, task_file_name.
 */
export async function tagsOfTasks(folder: string): Promise<Set<string>> {
  const tasks = await findTasks([folder]);
  const texts = await Promise.all(
    [...tasks.values()].map((task) =>
      readFile(join(task, 'environment', 'Dockerfile'), 'utf8').catch(() => ''),
    ),
  );
  return new Set(texts.flatMap(baseImages));
}

/**
 * The stand-ins, all of one suite when one is named.
 * @throws usage for a name whose Python is built for another suite.
 */
function standInsOf({ suite, tags }: BaseOptions): readonly StandIn[] {
  if (suite === undefined) return STAND_INS;
  const fixed = STAND_INS.find(
    (one) => one.python === 'built' && one.suite !== suite && one.tags.some((tag) => tags.has(tag)),
  );
  if (fixed !== undefined)
    throw new EvaluatorError(
      'usage',
      `--suite ${suite}: ${fixed.tags.join(', ')} is made of ${fixed.suite} alone`,
    );
  return STAND_INS.map((one) => (one.python === 'built' ? one : { ...one, suite }));
}

/** What has the name and may keep it: another suite's stand-in gives way to a suite that was asked for. */
async function keptImage(store: ImageStore, tag: string, suite: Suite | undefined): Promise<string | null> {
  const image = await store.inspect(tag);
  if (image === null) return null;
  const isStandIn = image.labels[STAND_IN_LABEL] === STAND_IN_VALUE;
  return suite !== undefined && isStandIn && image.labels[SUITE_LABEL] !== suite ? null : image.id;
}

/**
 * Gives the engine images under the names that tasks use in FROM, made from Debian packages, for a machine that
 * reaches no registry. Names that are there already are left alone, but for stand-ins of another suite than is named.
 * @throws usage, engine_absent, base_unavailable, command_failed.
 */
export async function makeBases(options: BaseOptions): Promise<BaseResult[]> {
  const standIns = standInsOf(options);
  const store = await connectImageStore(options.engineSocket);
  const results: BaseResult[] = [];
  for (const standIn of standIns) {
    const missing: string[] = [];
    for (const tag of standIn.tags.filter((tag) => options.tags.has(tag))) {
      const image = await keptImage(store, tag, options.suite);
      if (image === null) missing.push(tag);
      else results.push({ tag, image, action: 'kept' });
    }
    if (missing.length === 0) continue;

    let image = await findMade(store, standIn);
    if (image === null) {
      options.onProgress(`making ${standIn.suite} for ${missing.join(', ')}`);
      image = await makeImage(store, { ...standIn, tags: missing });
    }
    for (const tag of missing) {
      await store.tag(image, tag);
      results.push({ tag, image, action: 'made' });
    }
  }
  return results;
}
