import { describe, expect, it } from 'vitest';
import { BASE_SELECTION, frontTables, selectFor } from '../../../scripts/toolchain/select.ts';

const text = (selection: Parameters<typeof frontTables>[0], name: string) =>
  frontTables(selection)
    .find(({ path }) => path === `front/lib/${name}`)
    ?.bytes.toString() ?? '';

describe('selectFor', () => {
  it('has pytest in each version, and nothing compiled, when nobody asks for more', () => {
    expect([...BASE_SELECTION.wheels]).toContain('pytest==8.4.1');
    expect([...BASE_SELECTION.wheels].some((key) => key.startsWith('numpy=='))).toBe(false);
    expect(BASE_SELECTION.groups).toEqual(new Set());
  });

  it('adds what a task asks for, with what that needs', () => {
    const { wheels, groups } = selectFor([
      { python: ['opencv-contrib-python==4.11.0.86', 'Toml==0.10.2'], apt: ['expect', 'curl'] },
    ]);
    expect([...wheels]).toEqual(
      expect.arrayContaining(['opencv-contrib-python==4.11.0.86', 'numpy==2.3.4', 'toml==0.10.2']),
    );
    expect(groups).toEqual(new Set(['opencv', 'expect']));
  });

  it('takes the version that a task names instead of the one that another of its packages needs', () => {
    const { wheels } = selectFor([{ python: ['scikit-image==0.25.0', 'numpy==2.3.1'], apt: [] }]);
    expect([...wheels].filter((key) => key.startsWith('numpy=='))).toEqual(['numpy==2.3.1']);
  });

  it('keeps the versions of two tasks apart', () => {
    const { wheels } = selectFor([
      { python: ['numpy==2.3.0'], apt: [] },
      { python: ['numpy==2.3.2'], apt: [] },
    ]);
    expect([...wheels].filter((key) => key.startsWith('numpy==')).sort()).toEqual([
      'numpy==2.3.0',
      'numpy==2.3.2',
    ]);
  });

  it('has another Python, with packages of its own, for the tasks that ask for it and for no other', () => {
    const mailman = { python: ['mailman==3.3.8', 'pytest==8.4.1'], apt: [], interpreters: ['3.12'] };
    const { wheels, otherWheels, groups, served } = selectFor([
      mailman,
      { python: ['numpy==2.3.1'], apt: [] },
    ]);
    expect(groups).toEqual(new Set(['python3.12']));
    expect([...(otherWheels.get('3.12') ?? [])]).toEqual(
      expect.arrayContaining([
        'mailman==3.3.8',
        'sqlalchemy==2.0.44',
        'pytest==8.4.1',
        'pytest-json-ctrf==0.3.5',
      ]),
    );
    expect([...wheels]).toContain('numpy==2.3.1');
    expect([...wheels, ...served.packages.keys()]).not.toContain('mailman==3.3.8');
    expect([...(otherWheels.get('3.12') ?? [])]).not.toContain('numpy==2.3.1');
  });

  it.each([['3.12.2'], ['3.11'], ['>=3.12']])('has no Python for a request for %s', (version) => {
    const selection = selectFor([{ python: [], apt: [], interpreters: [version] }]);
    expect(selection).toEqual(BASE_SELECTION);
  });

  it('adds nothing for what is not served', () => {
    expect(selectFor([{ python: ['torch==2.7.1'], apt: ['ffmpeg'] }])).toEqual(BASE_SELECTION);
  });
});

describe('frontTables', () => {
  it('lists what the volume holds and no more: the rest is refused by name', () => {
    const selection = selectFor([{ python: ['numpy==2.3.1'], apt: ['sshpass'] }]);
    const packages = text(selection, 'packages.txt').split('\n');
    expect(packages).toContain('numpy==2.3.1');
    expect(packages).not.toContain('numpy==2.3.2');
    expect(text(selection, 'apt-packages.txt')).toMatch(/^sshpass /m);
    expect(text(selection, 'apt-packages.txt')).not.toMatch(/^expect /m);
    expect(text(selection, 'apt-packages.txt')).toMatch(/^curl$/m);
  });

  it('says which other Pythons there are, and what each has', () => {
    const selection = selectFor([{ python: ['mailman==3.3.8'], apt: [], interpreters: ['3.12'] }]);
    expect(text(selection, 'pythons.txt')).toBe('3.12 3.12.1\n');
    expect(text(selection, 'packages-3.12.txt')).toMatch(/^mailman==3.3.8 /m);
    expect(text(selection, 'packages.txt')).not.toMatch(/^mailman/m);
    expect(frontTables(BASE_SELECTION).map(({ path }) => path)).toEqual([
      'front/lib/packages.txt',
      'front/lib/apt-packages.txt',
    ]);
  });
});
