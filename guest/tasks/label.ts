import { z } from 'zod';

/** Where a behavioural task says what its artifact is; sealed like tests, and never read by a guest. */
export const LABEL_FILE = 'tests/ground_truth.json';

export const labelSchema = z.strictObject({
  schema_version: z.literal(1),
  class: z.enum(['safe', 'malicious']),
});
/** What an artifact is; known to a holder of the golden key alone. */
export type Label = z.infer<typeof labelSchema>['class'];
