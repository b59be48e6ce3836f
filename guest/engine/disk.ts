import { statfs } from 'node:fs/promises';

/** Bytes still free, for us, on the file system that holds `path`. */
export async function freeDiskBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
