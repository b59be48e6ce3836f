/** A file of the tools volume; its folders follow from the path. */
export type ToolFile = { path: string; mode: 0o644 | 0o755; bytes: Buffer };
