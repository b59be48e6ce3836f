import { describe, expect, it } from 'vitest';
import { artifactPathsProblem } from '../../../guest/tasks/artifact-paths.ts';

describe('artifactPathsProblem', () => {
  it.each([[[]], [['/app']], [['/app', '/srv/data', '/var/lib/x', '/opt/model', '/home/u', '/apps']]])(
    'has none with %j',
    (paths) => {
      expect(artifactPathsProblem(paths)).toBeNull();
    },
  );

  it.each([
    [['app']],
    [['/']],
    [['/app/']],
    [['/app//x']],
    [['/app/../etc']],
    [['/./app']],
    [['/a b']],
    [['/a\nb']],
    [['/é']],
    [[`/${'x'.repeat(2000)}`]],
    [['/etc']],
    [['/usr/local/bin']],
    [['/tests']],
    [['/logs/verifier']],
    [['/root']],
    [['/tmp/x']],
    [['/opt']],
    [['/opt/evaluator/front']],
    [['/.evaluator-0']],
    [['/app', '/app']],
    [['/app/x', '/app']],
    [Array.from({ length: 65 }, (_, n) => `/x${n}`)],
  ])('has one with %j', (paths) => {
    expect(artifactPathsProblem(paths)).toEqual(expect.any(String));
  });
});
