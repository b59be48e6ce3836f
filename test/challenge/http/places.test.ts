import { expect, it } from 'vitest';
import { Places } from '../../../challenge/http/places.ts';
import { rejectionCode } from '../../support/throws.ts';

const held = (places: Places, owner: string) => {
  const end = Promise.withResolvers<string>();
  return { done: places.hold(owner, () => end.promise), end: () => end.resolve(owner) };
};

it('no owner holds the places of the others', async () => {
  const places = new Places({ total: 3, perOwner: 2 });
  const first = held(places, 'a');
  held(places, 'a');
  expect(await rejectionCode(held(places, 'a').done)).toBe('server_busy');
  held(places, 'b');
  expect(await rejectionCode(held(places, 'c').done)).toBe('server_busy');
  first.end();
  expect(await first.done).toBe('a');
  const last = held(places, 'c');
  last.end();
  expect(await last.done).toBe('c');
});

it('work that fails gives its place back', async () => {
  const places = new Places({ total: 1, perOwner: 1 });
  for (let i = 0; i < 3; i++) {
    const failing = places.hold('a', () => Promise.reject(new Error('broke off')));
    await expect(failing).rejects.toThrow('broke off');
  }
});
