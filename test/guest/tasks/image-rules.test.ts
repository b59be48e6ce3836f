import { describe, expect, it } from 'vitest';
import {
  STAND_IN_LABEL,
  SUITE_LABEL,
  type TaskImage,
  verifyTaskImage,
} from '../../../guest/tasks/image-rules.ts';
import { codeOf } from '../../support/throws.ts';

const EXPECTED = { architecture: 'amd64', maxBytes: 1000 };
const IMAGE: TaskImage = { os: 'linux', architecture: 'amd64', sizeBytes: 1000, volumes: [], labels: {} };

const verify = (change: Partial<TaskImage>) =>
  verifyTaskImage({ ...IMAGE, ...change }, EXPECTED, 'task demo');

describe('verifyTaskImage', () => {
  it('takes an ordinary image, and one on a stand-in', () => {
    expect(() => verify({ labels: { maintainer: 'x' } })).not.toThrow();
    expect(() => verify({ labels: { [STAND_IN_LABEL]: 'stand-in', [SUITE_LABEL]: 'trixie' } })).not.toThrow();
  });

  it.each<[string, Partial<TaskImage>]>([
    ['image_declares_volume', { volumes: ['/data'] }],
    ['image_label_reserved', { labels: { 'io.cvm-evaluator.session': 'x' } }],
    ['image_label_reserved', { labels: { 'io.cvm-evaluator.': '' } }],
    ['image_architecture', { architecture: 'arm64' }],
    ['image_architecture', { os: 'windows' }],
    ['image_too_large', { sizeBytes: 1001 }],
  ])('%s: %j', (code, change) => {
    expect(codeOf(() => verify(change))).toBe(code);
  });
});
