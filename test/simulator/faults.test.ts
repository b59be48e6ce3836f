import { describe, expect, it } from 'vitest';
import { FAULT_NAMES, findFault, hasFault, parseFault } from '../../simulator/faults.ts';

describe('parseFault', () => {
  it('reads names, and values where they belong', () => {
    expect(parseFault('debug-td')).toEqual({ name: 'debug-td' });
    expect(parseFault('slow-quote=1500')).toEqual({ name: 'slow-quote', ms: 1500 });
    expect(parseFault('hung-call=GetTlsKey')).toEqual({ name: 'hung-call', method: 'GetTlsKey' });
    expect(parseFault('trailing-zeros=3')).toEqual({ name: 'trailing-zeros', bytes: 3 });
  });

  it.each([
    '',
    'debug',
    'toString',
    'debug-td=',
    'debug-td=1',
    'slow-quote',
    'slow-quote=',
    'slow-quote=0',
    'slow-quote=1.5',
    'slow-quote=-1',
    'slow-quote=600001',
    'hung-call',
    'hung-call=Everything',
    'hung-call=GetQuote=1',
    'trailing-zeros=1e3',
  ])('refuses %j', (text) => {
    expect(() => parseFault(text)).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  it('names every fault once', () => {
    expect(new Set(FAULT_NAMES).size).toBe(13);
  });
});

describe('a list of faults', () => {
  it('is searched by name', () => {
    const faults = [parseFault('slow-quote=5')];
    expect(findFault(faults, 'slow-quote')?.ms).toBe(5);
    expect(findFault(faults, 'trailing-zeros')).toBeUndefined();
    expect(hasFault(faults, 'slow-quote')).toBe(true);
    expect(hasFault([], 'slow-quote')).toBe(false);
  });
});
