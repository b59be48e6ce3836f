import { EvaluatorError } from '../../guest/errors.ts';

/** What Python 3.12 of interpreters.lock takes for its folder where it does not find itself. */
export const BUILT_AT = '/home/runner/work/javacpp-presets/javacpp-presets/cpython/cppbuild/linux-x86_64';
const OPENSSL_PATHS = ['/ssl', '/lib/engines-3', '/lib/ossl-modules'].map((path) => `${BUILT_AT}${path}`);

/**
 * Paths compiled into a library or a program from which it would load code, or learn what code to load, out of the container.
 * The agent was root there. The first folder of each, three letters or more, is overwritten by /sys, which is read-only
 * and holds none of them.
 */
const CODE_PATHS: Readonly<Record<string, readonly string[]>> = {
  'ld-linux-x86-64.so.2': [
    '/etc/ld.so.preload',
    '/etc/ld.so.cache',
    // What a library that is not in the volume would be searched in: it must be missing instead.
    '/lib/x86_64-linux-gnu/',
    '/usr/lib/x86_64-linux-gnu/',
    '/lib/',
    '/usr/lib/',
  ],
  // NSS loads the libraries that nsswitch.conf names, iconv those that gconv-modules names.
  'libc.so.6': [
    '/etc/nsswitch.conf',
    '/usr/lib/x86_64-linux-gnu/gconv',
    '/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache',
  ],
  // Read whenever libcrypto starts: openssl.cnf may name a provider, which is a library.
  'libcrypto.so.3': [
    '/usr/lib/ssl',
    '/usr/lib/x86_64-linux-gnu/engines-3',
    '/usr/lib/x86_64-linux-gnu/ossl-modules',
  ],
  // Specs, which say what to start, start files and programs.
  gcc: ['/usr/lib/gcc/', '/usr/libexec/gcc/'],
  // Python 3.12 of interpreters.lock: where it was built, and OpenSSL, which two of its modules bring along.
  'libpython3.12.so.1.0': [BUILT_AT],
  '_ssl.cpython-312-x86_64-linux-gnu.so': OPENSSL_PATHS,
  '_hashlib.cpython-312-x86_64-linux-gnu.so': OPENSSL_PATHS,
  'libgssapi_krb5.so.2': ['/etc/gss/mech', '/etc/gss/mech.d/*.conf', '/usr/lib/x86_64-linux-gnu/gss/'],
};

/** The first eight bytes of what a program writes by instructions, not out of its strings: the machine's own specs. */
const WRITTEN_PATHS: Readonly<Record<string, readonly string[]>> = { gcc: ['/usr/lib'] };

/**
 * The library with its code paths overwritten; one without any is returned as it is.
 * @throws toolchain_invalid when a path is not where it was: what would be loaded then is not known.
 */
export function confine(soname: string, bytes: Buffer): Buffer {
  const paths = CODE_PATHS[soname];
  if (paths === undefined) return bytes;
  const confined = Buffer.from(bytes);
  const searched = [
    ...paths.map((path) => ({ path, places: placesOf(confined, path) })),
    ...(WRITTEN_PATHS[soname] ?? []).map((path) => ({ path, places: writesOf(confined, path) })),
  ];
  for (const { path, places } of searched) {
    if (places.length === 0)
      throw new EvaluatorError(
        'toolchain_invalid',
        `${soname} does not hold ${path}: what it loads from a container has to be looked at again`,
      );
    // Slashes fill what is longer: the rest stays below /sys.
    const first = /^\/[^/]+/.exec(path)?.[0].length ?? 0;
    for (const at of places) confined.write('/sys'.padEnd(first, '/'), at, 'latin1');
  }
  return confined;
}

/** Where the path stands as a string of its own, not as the end of a longer one. */
function placesOf(bytes: Buffer, path: string): number[] {
  const wanted = Buffer.from(`${path}\0`, 'latin1');
  const places: number[] = [];
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) {
    const before = bytes[at - 1] ?? 0;
    if (before < 0x20 || before > 0x7e) places.push(at);
  }
  return places;
}

/** Where an instruction of amd64 (`movabs`: REX.W, B8 and a register, eight bytes) holds the beginning of a path. */
function writesOf(bytes: Buffer, beginning: string): number[] {
  const wanted = Buffer.from(beginning, 'latin1');
  const places: number[] = [];
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) {
    const [prefix = 0, opcode = 0] = bytes.subarray(Math.max(0, at - 2), at);
    if ((prefix & 0xfe) === 0x48 && (opcode & 0xf8) === 0xb8) places.push(at);
  }
  return places;
}
