import { ZipFile } from 'yazl';
import type { AgentFile } from '../../guest/agent/types.ts';

/** The first moment a ZIP can name. In local time, because that is what the format stores. */
const FIXED_MTIME = new Date(1980, 0, 1);

/**
 * Zips files so that the same files give the same bytes, hence the same agent hash, on every machine: sorted
 * by path, one date, modes 0644 and 0755, stored (compressed bytes differ between zlib builds).
 */
export async function zipFiles(files: readonly AgentFile[]): Promise<Buffer> {
  const zip = new ZipFile();
  for (const { path, bytes, executable } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    zip.addBuffer(bytes, path, {
      mtime: FIXED_MTIME,
      forceDosTimestamp: true,
      mode: executable ? 0o100755 : 0o100644,
      compress: false,
    });
  }
  zip.end();
  const chunks: Buffer[] = [];
  for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
