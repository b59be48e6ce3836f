/** What is taken out of the packages of one group of debian.lock; libraries follow from what these need. */
export type Recipe = {
  programs: readonly string[];
  data: readonly { from: string; to: string; except: RegExp }[];
};

// Neither tests nor what draws windows, nor what a static build of Python needs.
const NOT_OF_PYTHON =
  /^(test|idlelib|tkinter|turtledemo|turtle\.py|ensurepip|pydoc_data|sitecustomize\.py|config-3\.13[^/]*)(\/|$)|^lib-dynload\/(_test|_ctypes_test|_xx|xx|_dbm)|(^|\/)__pycache__\//;

/** By group of debian.lock. A group other than `base` is named like the Debian package that it stands for. */
export const RECIPES: Readonly<Record<string, Recipe>> = {
  base: {
    programs: ['usr/bin/python3.13', 'usr/bin/bash', 'usr/bin/dash', 'usr/bin/curl'],
    data: [{ from: 'usr/lib/python3.13/', to: 'lib/python3.13/', except: NOT_OF_PYTHON }],
  },
};
