import { mentionedPath, type ProtectedCode, protectedPath } from '../protected.ts';
import { textsOf, textValue, type Value } from '../value.ts';
import type { Detector } from './context.ts';

/** The last part of the name of whatever opens, lists, copies or links a file. */
const FILE_CALLS = new Set(
  (
    'open fdopen openSync read_text read_bytes write_text write_bytes listdir walk scandir iterdir glob rglob iglob ' +
    'copy copy2 copyfile copytree copyFile copyFileSync cp cpSync move rename renameSync replace link symlink ' +
    'readlink symlinkSync linkSync chdir readFile readFileSync createReadStream createWriteStream readdir readdirSync ' +
    'opendir opendirSync writeFile writeFileSync appendFile appendFileSync getlines loadtxt read_csv read_json fromfile ' +
    'unlink remove rmtree rmSync rm connect createConnection createConnectionSync request get post UnixHTTPConnection ' +
    'DockerClient run_path import_module spec_from_file_location file'
  ).split(' '),
);
/** Commands that only say a path. */
const SAYING = new Set([
  'echo',
  'printf',
  '[',
  '[[',
  'test',
  'export',
  'declare',
  'local',
  'mkdir',
  ':',
  'true',
]);

function protectedIn(values: readonly Value[]): ProtectedCode | null {
  for (const text of values.flatMap((value) => textsOf(value))) {
    const code = protectedPath(text);
    if (code !== null) return code;
  }
  return null;
}

/** A word of a command can have the path behind an option's equal sign or a colon. */
function protectedWord(word: Value): ProtectedCode | null {
  for (const text of textsOf(word)) {
    const found = text
      .split(/[=:@]/)
      .map(protectedPath)
      .find((code) => code !== null);
    if (found) return found;
    const whole = protectedPath(text);
    if (whole) return whole;
  }
  return null;
}

const wordsOf = (value: Value) => textsOf(value).flatMap((text) => text.split(/\s+/).map(textValue));

/** Files and sockets that an agent must not touch: touched, or at least named. */
export const detectPaths: Detector = (fact) => {
  switch (fact.kind) {
    case 'call': {
      const method = fact.callee.slice(fact.callee.lastIndexOf('.') + 1);
      if (!FILE_CALLS.has(method)) return [];
      const code = protectedIn([fact.receiver, ...fact.args]);
      return code === null ? [] : [code];
    }
    case 'command': {
      const [name, ...args] = fact.words;
      if (SAYING.has(name?.texts[0] ?? '')) return [];
      const piped = name?.texts[0] === 'xargs' && fact.input ? wordsOf(fact.input) : [];
      const code = [...args, ...piped].map(protectedWord).find((one) => one !== null);
      return code ? [code] : [];
    }
    case 'text':
      return textsOf(fact.value).some((text) => protectedPath(text) ?? mentionedPath(text))
        ? ['mentions_protected_path']
        : [];
    default:
      return [];
  }
};
