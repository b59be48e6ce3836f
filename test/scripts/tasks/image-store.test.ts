import { describe, expect, it } from 'vitest';
import { connectionError } from '../../../guest/engine/engine-error.ts';
import { engineAbsence } from '../../../scripts/tasks/image-store.ts';

describe('engineAbsence', () => {
  it.each([
    ['ENOENT', 'start one'],
    ['ECONNREFUSED', 'start one'],
    ['EACCES', 'as root'],
  ])('says what to do about %s', (code, advice) => {
    const cause = connectionError({ call: 'info', of: 'engine' }, { code });
    expect(engineAbsence('/run/x.sock', cause)).toMatchObject({
      code: 'engine_absent',
      message: expect.stringMatching(new RegExp(`/run/x\\.sock.*${advice}.*--engine`)),
    });
  });

  it('leaves any other error as it is', () => {
    const other = new Error('other');
    expect(engineAbsence('/run/x.sock', other)).toBe(other);
  });
});
