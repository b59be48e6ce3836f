/** Debian suites that stand-ins are made from. */
export const SUITES = ['bookworm', 'trixie'] as const;
export type Suite = (typeof SUITES)[number];

/** A Debian suite that answers for the names tasks give in FROM, where no registry does. */
export interface StandIn {
  suite: Suite;
  /** `debian`: the suite's own. `built`: 3.13, made from source for /usr/local (stand-in-python.ts). */
  python: 'debian' | 'built';
  packages: readonly string[];
  tags: readonly string[];
}

// A task built on bookworm needs bookworm: trixie's OpenSSL, for one, prints names in another form.
// Every stand-in has python3; only python:* promises pip and venv.
export const STAND_INS: readonly StandIn[] = [
  {
    suite: 'bookworm',
    python: 'built',
    // Libraries of the Python that is built, and what the images that are stood for hold beside it.
    packages: [
      ...['ca-certificates', 'netbase', 'tzdata', 'libbz2-1.0', 'libffi8', 'liblzma5', 'libncursesw6'],
      ...['libreadline8', 'libsqlite3-0', 'libssl3', 'libuuid1', 'zlib1g'],
    ],
    tags: ['python:3.13-slim-bookworm'],
  },
  {
    suite: 'bookworm',
    python: 'debian',
    packages: ['ca-certificates', 'python3', 'python3-pip', 'python3-venv'],
    // Its own Python is 3.11, whatever the name says: the base is recorded as a stand-in.
    tags: [
      ...['3.10', '3.11', '3.12', '3.14'].map((version) => `python:${version}-slim-bookworm`),
      'python:3.11-slim',
    ],
  },
  {
    suite: 'trixie',
    python: 'debian',
    packages: ['ca-certificates', 'python3'],
    tags: [
      'ubuntu:24.04',
      'debian:13',
      'debian:13-slim',
      'debian:13.0-slim',
      'debian:trixie',
      'debian:trixie-slim',
    ],
  },
];
