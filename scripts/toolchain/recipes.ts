/** What is taken out of the packages of one group of debian.lock; libraries follow from what these need. */
export type Recipe = {
  programs: readonly string[];
  /** Programs that one of these starts: below `libexec/`, where nothing else looks. */
  helpers?: readonly string[];
  data: readonly { from: string; to: string; except: RegExp }[];
  /** Lines of shell before a program starts, and arguments before its own. */
  prepare?: string;
  arguments?: string;
  /** Other names under which the program is started. */
  aliases?: readonly string[];
  /** `front`: the program is found before the image's. `image`: only once a script has installed it. */
  place?: 'front' | 'image';
};

const NOTHING = /(?!)/;

// What linking needs of GCC and of the C library: no sanitizers, no static libc.
const NOT_FOR_LINKING = /^(?!crt(begin|end)S?\.o$|libgcc(_eh)?\.a$|libgcc_s\.so$|include\/)/;
const NOT_OF_SYSROOT =
  /^(?!(S?crt1|crti|crtn)\.o$|lib[cm]\.so$|lib(c_nonshared|dl|pthread)\.a$|libgcc_s\.so\.1$)/;
const NOT_IN_SCRIPTS = /^(?!lib[cm]\.so\.6$|libmvec\.so\.1$)/;
const NOT_THE_LOADER = /^(?!ld-linux-x86-64\.so\.2$)/;
const MULTIARCH = 'x86_64-linux-gnu';
const PYTHON_HEADERS = /^(x86_64-linux-gnu\/)?python3\.13\//;

// Neither tests nor what draws windows, nor what a static build of Python needs; no pip, no NIS, no sound.
const NOT_OF_PYTHON =
  /^(test|idlelib|tkinter|turtledemo|turtle\.py|ensurepip|pydoc_data|sitecustomize\.py|config-3\.1[^/]*|site-packages)(\/|$)|^lib-dynload\/(_test|_ctypes_test|_xx|xx|_dbm|nis|ossaudiodev)|(^|\/)__pycache__\//;

/** By group of debian.lock; a group that is not here has libraries only. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  base: {
    programs: ['usr/bin/python3.13', 'usr/bin/bash', 'usr/bin/dash', 'usr/bin/curl'],
    data: [{ from: 'usr/lib/python3.13/', to: 'lib/python3.13/', except: NOT_OF_PYTHON }],
  },
  binutils: {
    programs: ['nm', 'objdump', 'readelf', 'strings'].map((name) => `usr/bin/x86_64-linux-gnu-${name}`),
    data: [],
    place: 'front',
  },
  expect: {
    programs: ['usr/bin/expect'],
    data: [{ from: 'usr/share/tcltk/tcl8.6/', to: 'share/tcl8.6/', except: NOTHING }],
    prepare: 'export TCL_LIBRARY=/opt/evaluator/runtime/share/tcl8.6',
    // No .expect.rc, neither the image's nor the agent's.
    arguments: '-n -N',
    place: 'front',
  },
  // For extension modules of the volume's own Python. What the container has in GCC's place is not read by it.
  gcc: {
    programs: [`usr/bin/${MULTIARCH}-gcc`],
    helpers: [
      ...['cc1', 'collect2'].map((name) => `usr/libexec/gcc/${MULTIARCH}/14/${name}`),
      ...['as', 'ld'].map((name) => `usr/bin/${MULTIARCH}-${name}`),
    ],
    data: [
      { from: `usr/lib/gcc/${MULTIARCH}/14/`, to: 'libexec/', except: NOT_FOR_LINKING },
      { from: `usr/lib/${MULTIARCH}/`, to: `sysroot/usr/lib/${MULTIARCH}/`, except: NOT_OF_SYSROOT },
      // Where the linker scripts libc.so and libm.so have them.
      { from: `usr/lib/${MULTIARCH}/`, to: `sysroot/lib/${MULTIARCH}/`, except: NOT_IN_SCRIPTS },
      { from: `usr/lib/${MULTIARCH}/`, to: 'sysroot/lib64/', except: NOT_THE_LOADER },
      { from: 'usr/include/', to: 'sysroot/usr/include/', except: PYTHON_HEADERS },
      { from: 'usr/include/python3.13/', to: 'include/python3.13/', except: NOTHING },
      {
        from: `usr/include/${MULTIARCH}/python3.13/`,
        to: `include/python3.13/${MULTIARCH}/python3.13/`,
        except: NOTHING,
      },
    ],
    arguments: [
      '-B$RUNTIME/libexec --sysroot=$RUNTIME/sysroot -fno-use-linker-plugin -nostdinc',
      ...['libexec/include', `sysroot/usr/include/${MULTIARCH}`, 'sysroot/usr/include'].map(
        (folder) => `-isystem $RUNTIME/${folder}`,
      ),
    ].join(' '),
    aliases: ['cc', `${MULTIARCH}-gcc`],
    place: 'image',
  },
  // Of its commands those that are part of the program itself; an image that has git keeps its own.
  git: { programs: ['usr/bin/git'], data: [], place: 'image' },
  // Of interpreters.lock. It has a folder of its own, so that each Python knows which it was started as.
  'python3.12': {
    programs: ['usr/bin/python3.12'],
    data: [{ from: 'usr/lib/python3.12/', to: 'python3.12/lib/python3.12/', except: NOT_OF_PYTHON }],
  },
  primer3: { programs: ['usr/bin/oligotm'], data: [], place: 'front' },
  sshpass: { programs: ['usr/bin/sshpass'], data: [], place: 'front' },
};
