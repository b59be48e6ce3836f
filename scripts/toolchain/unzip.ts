import { type Entry, fromBuffer, type ZipFile } from 'yauzl';
import { EvaluatorError } from '../../guest/errors.ts';

export type UnzippedFile = { path: string; bytes: Buffer };

/**
 * The regular files of a ZIP held in memory, but for those whose path is of `except`; nothing in it is run.
 * @param what names the archive in messages.
 * @throws toolchain_invalid
 */
export async function unzip(archive: Buffer, what: string, except: RegExp): Promise<UnzippedFile[]> {
  try {
    return await readAll(await open(archive), except);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EvaluatorError('toolchain_invalid', `${what} is no readable ZIP: ${why}`, { cause });
  }
}

function open(archive: Buffer): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    fromBuffer(archive, { lazyEntries: true }, (error, zip) => (error ? reject(error) : resolve(zip)));
  });
}

function readAll(zip: ZipFile, except: RegExp): Promise<UnzippedFile[]> {
  return new Promise((resolve, reject) => {
    const files: UnzippedFile[] = [];
    zip.on('error', reject);
    zip.on('end', () => resolve(files));
    zip.on('entry', async (entry: Entry) => {
      try {
        if (!entry.fileName.endsWith('/') && !except.test(entry.fileName)) {
          files.push({ path: entry.fileName, bytes: await readEntry(zip, entry) });
        }
        zip.readEntry();
      } catch (error) {
        reject(error);
      }
    });
    zip.readEntry();
  });
}

function readEntry(zip: ZipFile, entry: Entry): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    zip.openReadStream(entry, (error, stream) => {
      if (error) return reject(error);
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => resolve(Buffer.concat(chunks)));
      stream.on('error', reject);
    });
  });
}
