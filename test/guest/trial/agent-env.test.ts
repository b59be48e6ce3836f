import { describe, expect, it } from 'vitest';
import { execEnv } from '../../../guest/trial/agent-env.ts';

describe('execEnv', () => {
  it('gives what is said, and nothing of the image', () => {
    expect(execEnv(['A=1', 'B=x=y'], [], ['PATH=/bin', 'PYTHONPATH=/image'])).toEqual(['A=1', 'B=x=y']);
  });

  it('lets our own word about the model stand, whatever else is said', () => {
    expect(execEnv(['OPENAI_API_KEY=sk-agent', 'A=1'], ['OPENAI_API_KEY=ours'], [])).toEqual([
      'A=1',
      'OPENAI_API_KEY=ours',
    ]);
  });

  it('hides no folder of Python behind another', () => {
    expect(execEnv(['PYTHONPATH=/a', 'X=1', 'PYTHONPATH=/b'], [], ['PYTHONPATH=/image'])).toEqual([
      'X=1',
      'PYTHONPATH=/a:/b:/image',
    ]);
  });
});
