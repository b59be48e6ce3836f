/** What is taken out of the packages of one group of debian.lock; libraries follow from what these need. */
export type Recipe = {
  programs: readonly string[];
  data: readonly { from: string; to: string; except: RegExp }[];
  /** Lines of shell before a program starts, and arguments before its own. */
  prepare?: string;
  arguments?: string;
  /** `front`: the program is found before the image's. `image`: only once a script has installed it. */
  place?: 'front' | 'image';
};

const NOTHING = /(?!)/;

// Neither tests nor what draws windows, nor what a static build of Python needs.
const NOT_OF_PYTHON =
  /^(test|idlelib|tkinter|turtledemo|turtle\.py|ensurepip|pydoc_data|sitecustomize\.py|config-3\.13[^/]*)(\/|$)|^lib-dynload\/(_test|_ctypes_test|_xx|xx|_dbm)|(^|\/)__pycache__\//;

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
  // Of its commands those that are part of the program itself; an image that has git keeps its own.
  git: { programs: ['usr/bin/git'], data: [], place: 'image' },
  primer3: { programs: ['usr/bin/oligotm'], data: [], place: 'front' },
  sshpass: { programs: ['usr/bin/sshpass'], data: [], place: 'front' },
};
