/** Where an auditing agent finds its task and leaves its answer; in docs/tracks.md. */
export const ARTIFACT = '/task/artifact';
export const WORKSPACE = '/task/workspace';
export const CONTEXT = '/task/context.json';
export const RESULT = '/task/result.json';
