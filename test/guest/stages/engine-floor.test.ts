import { describe, expect, it } from 'vitest';
import type { EngineInfo } from '../../../guest/engine/port.ts';
import { isAtLeast, verifyEngineFloor } from '../../../guest/stages/engine-floor.ts';
import type { Mechanism } from '../../../guest/wire/mechanism.ts';
import { codeOf, thrown } from '../../support/throws.ts';

describe('isAtLeast', () => {
  it.each([
    ['25.0.2', '25.0.2', true],
    ['25.0.10', '25.0.2', true],
    ['25.1', '25.0.2', true],
    ['26', '25.0.2', true],
    ['25.0', '25.0.2', false],
    ['25.0.1', '25.0.2', false],
    ['24.9.9', '25.0.2', false],
    ['1.1.12+ds1', '1.1.12', true],
    ['1.2.0-rc.1', '1.1.12', true],
    ['20.10.24+dfsg1', '25.0.2', false],
    ['1.9', '1.41', false],
    ['', '1.0', false],
    ['unknown', '1.0', false],
  ])('%s against the floor %s: %s', (version, floor, expected) => {
    expect(isAtLeast(version, floor)).toBe(expected);
  });
});

describe('verifyEngineFloor', () => {
  const floors = {
    api: '1.41',
    engine: { version: '25.0.2', answers: [] },
    runc: { version: '1.1.12', answers: [] },
  } as unknown as Mechanism['floors'];
  const info = { apiVersion: '1.44', version: '25.0.3', runcVersion: '1.1.12' } as EngineInfo;

  it('takes an engine at or above every floor', () => {
    expect(() => verifyEngineFloor(info, floors)).not.toThrow();
  });

  it.each([
    ['API', { apiVersion: '1.40' }, '1.40', '1.41'],
    ['version', { version: '25.0.1' }, '25.0.1', '25.0.2'],
    ['runc', { runcVersion: '1.1.11' }, '1.1.11', '1.1.12'],
  ])('names %s, what it is and what it must be', (what, change, have, floor) => {
    const error = thrown(() => verifyEngineFloor({ ...info, ...change }, floors));
    expect(error.code).toBe('engine_below_floor');
    for (const word of [what, have, floor]) expect(error.message).toContain(word);
  });

  it('refuses an engine that does not say which runc it has', () => {
    expect(codeOf(() => verifyEngineFloor({ ...info, runcVersion: '' }, floors))).toBe('engine_below_floor');
  });
});
